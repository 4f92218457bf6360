//! The kinds of page a region can be made of, and the order in which a machine that lacks one falls back.

use std::fmt;
use std::str::FromStr;

/// A kind of page.
///
/// The order of fallback is [`Huge1G`](PageKind::Huge1G), [`Huge2M`](PageKind::Huge2M),
/// [`Transparent`](PageKind::Transparent), [`Base`](PageKind::Base): each needs less of the machine than the one
/// before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageKind {
    /// Regular 4 KiB pages; transparent huge pages are refused for the region, so that a comparison is honest.
    Base,
    /// 2 MiB pages that the kernel assembles by itself where it can (`madvise(MADV_HUGEPAGE)`).
    Transparent,
    /// 2 MiB pages from the pool that the operator set aside (`vm.nr_hugepages`).
    Huge2M,
    /// 1 GiB pages from the pool that the operator set aside (`hugepages-1048576kB/nr_hugepages`).
    Huge1G,
}

impl PageKind {
    /// Every kind, largest first: the order of fallback.
    pub const ALL: [PageKind; 4] =
        [PageKind::Huge1G, PageKind::Huge2M, PageKind::Transparent, PageKind::Base];

    /// Bytes of one page; for [`PageKind::Transparent`], of the page hoped for.
    ///
    /// ```
    /// # use lookaside_pages::PageKind;
    /// assert_eq!(PageKind::Transparent.size(), 2 << 20);
    /// ```
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            PageKind::Base => 4 << 10,
            PageKind::Transparent | PageKind::Huge2M => 2 << 20,
            PageKind::Huge1G => 1 << 30,
        }
    }

    /// The kind to try when this one is refused; `None` after the last.
    #[must_use]
    pub const fn smaller(self) -> Option<PageKind> {
        match self {
            PageKind::Huge1G => Some(PageKind::Huge2M),
            PageKind::Huge2M => Some(PageKind::Transparent),
            PageKind::Transparent => Some(PageKind::Base),
            PageKind::Base => None,
        }
    }

    /// The name used in options and reports: `4k`, `thp`, `2m`, `1g`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PageKind::Base => "4k",
            PageKind::Transparent => "thp",
            PageKind::Huge2M => "2m",
            PageKind::Huge1G => "1g",
        }
    }
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a page kind was not one of `4k`, `thp`, `2m`, `1g`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPageKind(String);

impl fmt::Display for UnknownPageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown page kind '{}': use one of 4k, thp, 2m, 1g", self.0)
    }
}

impl std::error::Error for UnknownPageKind {}

impl FromStr for PageKind {
    type Err = UnknownPageKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        PageKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownPageKind(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallback_visits_every_kind_once_in_order() {
        let mut order = vec![PageKind::Huge1G];
        while let Some(next) = order.last().unwrap().smaller() {
            order.push(next);
        }
        assert_eq!(order, PageKind::ALL);
        assert!(order.windows(2).all(|pair| pair[0].size() >= pair[1].size()));
    }

    #[test]
    fn names_are_read_back() {
        for kind in PageKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("3m".parse::<PageKind>(), Err(UnknownPageKind("3m".into())));
    }
}
