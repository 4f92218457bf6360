//! The branch predictor: directions by gshare, targets by the last one, returns by a stack.
//!
//! McFarling, "Combining Branch Predictors" (DEC WRL TN-36, 1993): a table of 2-bit counters, found by the
//! branch's address exclusive-or the outcomes of the branches before it. Indirect jumps and calls are
//! expected to go where they went last from the same address with the same history (Chang, Hao and Patt, ISCA
//! 1997, the target cache). A return goes to its call; the stack is 16 deep.

/// What kind of branch an instruction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// Taken or not.
    Conditional,
    /// Always taken, to a place that the instruction names.
    Direct,
    /// To a place that is in a register or in memory.
    Indirect,
    /// A call to a place that the instruction names.
    Call,
    /// A call to a place that is in a register or in memory.
    IndirectCall,
    /// Back to the call.
    Return,
}

/// Depth of the return stack.
const RETURNS: usize = 16;

/// The predictor's tables.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// Two-bit counters: 2 and 3 say taken.
    counters: Vec<u8>,
    targets: Vec<u64>,
    returns: [u64; RETURNS],
    top: usize,
    history: u64,
}

impl Predictor {
    /// A predictor with two to the power `bits` counters, each saying "not taken", weakly.
    #[must_use]
    pub fn new(bits: u32) -> Predictor {
        let entries = 1 << bits;
        Predictor {
            counters: vec![1; entries],
            targets: vec![0; entries],
            returns: [0; RETURNS],
            top: 0,
            history: 0,
        }
    }

    fn place(&self, address: u64) -> usize {
        (address ^ self.history) as usize & (self.counters.len() - 1)
    }

    /// A branch at `address`, of `length` bytes, was taken or not, to `target` if so: whether that was
    /// foretold. Then it is learnt.
    pub fn predict(&mut self, kind: BranchKind, address: u64, length: u64, taken: bool, target: u64) -> bool {
        let foretold = match kind {
            BranchKind::Conditional => {
                let place = self.place(address);
                let counter = &mut self.counters[place];
                let foretold = (*counter >= 2) == taken;
                *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
                self.history = self.history << 1 | u64::from(taken);
                foretold
            }
            BranchKind::Direct | BranchKind::Call => true,
            BranchKind::Indirect | BranchKind::IndirectCall => {
                let place = self.place(address);
                std::mem::replace(&mut self.targets[place], target) == target
            }
            BranchKind::Return => {
                self.top = (self.top + RETURNS - 1) % RETURNS;
                self.returns[self.top] == target
            }
        };
        if matches!(kind, BranchKind::Call | BranchKind::IndirectCall) {
            self.returns[self.top] = address + length;
            self.top = (self.top + 1) % RETURNS;
        }
        foretold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(
        predictor: &mut Predictor,
        kind: BranchKind,
        outcomes: impl IntoIterator<Item = (bool, u64)>,
    ) -> usize {
        outcomes
            .into_iter()
            .filter(|&(taken, target)| !predictor.predict(kind, 0x400, 2, taken, target))
            .count()
    }

    #[test]
    fn a_loop_of_four_is_learnt_with_its_exit() {
        let mut predictor = Predictor::new(12);
        let rounds = |count| (0..count).flat_map(|_| [(true, 0), (true, 0), (true, 0), (false, 0)]);
        wrong(&mut predictor, BranchKind::Conditional, rounds(40));
        assert_eq!(wrong(&mut predictor, BranchKind::Conditional, rounds(100)), 0);
    }

    #[test]
    fn coin_tosses_are_wrong_half_the_time() {
        let mut predictor = Predictor::new(10);
        let tosses = (0..20_000).map(|n| (crate::frames::mix(n) & 1 == 1, 0));
        let wrong = wrong(&mut predictor, BranchKind::Conditional, tosses);
        assert!((9_500..=10_500).contains(&wrong), "{wrong}");
    }

    #[test]
    fn returns_go_to_their_calls_and_jumps_where_they_went_last() {
        let mut predictor = Predictor::new(10);
        for depth in 0..10_u64 {
            assert!(predictor.predict(BranchKind::Call, 0x1000 * depth, 5, true, 0x9000));
        }
        for depth in (0..10_u64).rev() {
            assert!(predictor.predict(BranchKind::Return, 0x9010, 1, true, 0x1000 * depth + 5));
        }
        assert!(!predictor.predict(BranchKind::Return, 0x9010, 1, true, 0x1234));
        let jumps = [(true, 7), (true, 7), (true, 8), (true, 8)];
        assert_eq!(wrong(&mut predictor, BranchKind::Indirect, jumps), 2);
    }
}
