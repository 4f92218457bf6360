//! What a run is asked for, by name: a program, how it looks keys up, which, and by which hash. Compiled guests and
//! those of the laboratory's own process have the same names, in definitions, on command lines and in what is kept.

use serde::{Deserialize, Serialize};
use workload::DistributionError;
use workload::popularity::Popularity;

/// Names as they are written in definitions and on command lines; and titles, where reports have others.
macro_rules! names {
    ($(#[$comment:meta])* $type:ident {
        $($(#[$variant_comment:meta])* $variant:ident = $name:literal $(, $title:literal)?;)*
    }) => {
        $(#[$comment])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$variant_comment])* #[serde(rename = $name)] $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];

            /// As it is written in definitions and on command lines.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            /// As it is written in reports.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $($type::$variant => names!(@title $name $(, $title)?),)*
                }
            }
        }
    };
    (@title $name:literal) => { $name };
    (@title $name:literal, $title:literal) => { $title };
}

names! {
    /// A program of the STLT paper's Table II, or one of this project's own indexes.
    Container {
        /// A server's dictionary and what stands around it: under QEMU `redis-server`, unmodified on disk.
        Redis = "redis";
        /// Chains: `std::unordered_map`.
        UnorderedMap = "unordered_map";
        /// Open addressing: `google::dense_hash_map`.
        DenseHashMap = "dense_hash_map";
        /// A red-black tree: `std::map`.
        Map = "map";
        /// A B-tree: `absl::btree_map`, the successor of the paper's.
        BTree = "btree";
        /// This project's optimistic cuckoo table; under QEMU only, as those that follow.
        Cuckoo = "cuckoo";
        /// Its adaptive radix tree.
        Art = "art";
        /// The same, its hottest paths moved together after the load.
        ArtReorganised = "art-reorganised";
    }
}

impl Container {
    /// Our own: programs in Rust, beside this one (`lookaside-own-index`).
    pub const OWN: [Container; 3] = [Container::Cuckoo, Container::Art, Container::ArtReorganised];

    /// Whether it is one of our own.
    #[must_use]
    pub fn is_own(self) -> bool {
        Container::OWN.contains(&self)
    }
}

names! {
    /// How a key is looked up.
    Variant {
        /// By the index alone.
        Alone = "alone";
        /// By nobody: the record's address is known. What is left is what no table in front can save.
        Known = "known", "address known";
        /// With a search lookaside buffer in front.
        Slb = "slb", "SLB";
        /// With an STLT in software.
        StltSw = "stlt-sw", "STLT-SW";
        /// With an STLT that keeps virtual addresses only.
        StltVa = "stlt-va", "STLT-VA";
        /// With an STLT.
        Stlt = "stlt", "STLT";
        /// With a search lookaside buffer, asked for sixteen keys at a time, with prefetches.
        SlbBatches = "slb-batches", "SLB in batches";
        /// With an STLT, asked for sixteen keys at a time, with prefetches of their records.
        StltBatches = "stlt-batches", "STLT in batches";
    }
}

impl Variant {
    /// Those that compiled programs know. Of batches the addresses are in registers, which a plugin does not see.
    pub const COMPILED: [Variant; 5] =
        [Variant::Alone, Variant::Slb, Variant::Stlt, Variant::StltVa, Variant::StltSw];

    /// How much of an STLT there is, if there is one.
    #[must_use]
    pub const fn stlt(self) -> Option<sim::stlt::Variant> {
        match self {
            Variant::StltSw => Some(sim::stlt::Variant::Software),
            Variant::StltVa => Some(sim::stlt::Variant::VirtualOnly),
            Variant::Stlt | Variant::StltBatches => Some(sim::stlt::Variant::Full),
            Variant::Alone | Variant::Known | Variant::Slb | Variant::SlbBatches => None,
        }
    }

    /// Whether there is a search lookaside buffer.
    #[must_use]
    pub const fn is_slb(self) -> bool {
        matches!(self, Variant::Slb | Variant::SlbBatches)
    }

    /// Whether keys are looked up several at a time.
    #[must_use]
    pub const fn in_batches(self) -> bool {
        matches!(self, Variant::SlbBatches | Variant::StltBatches)
    }
}

names! {
    /// Which records are asked for: YCSB's distributions.
    Distribution {
        /// Zipfian with the exponent 0.99, strewn as YCSB does it: the hottest records lie anywhere (Table V's miss
        /// rates follow from it, and not from a plain one). YCSB draws a rank among ten thousand million and hashes it
        /// to a record, so each record is many ranks', and hardly one is asked for as seldom as the last of a plain
        /// one.
        Zipf = "zipf";
        /// Zipfian with the exponent 0.99 over the records, each of which has one rank.
        Plain = "plain", "plain zipf";
        /// The newest, by a Zipfian distance; one request in twenty inserts.
        Latest = "latest";
        /// All alike.
        Uniform = "uniform";
    }
}

impl Distribution {
    /// The Zipfian exponent of YCSB and of both papers.
    pub const THETA: f64 = 0.99;
    /// Of the requests for the latest, one in so many inserts.
    pub const INSERTS: u64 = 20;

    /// How often each of so many records is asked for; none where that changes as records are inserted.
    ///
    /// # Errors
    /// If there is no such distribution.
    pub fn popularity(self, records: u64, seed: u64) -> Result<Option<Popularity>, DistributionError> {
        Ok(Some(match self {
            Distribution::Zipf => Popularity::scrambled(records, Self::THETA)?,
            Distribution::Plain => Popularity::permuted(records, Self::THETA, seed)?,
            Distribution::Uniform => Popularity::uniform(records)?,
            Distribution::Latest => return Ok(None),
        }))
    }
}

names! {
    /// The hash of the table in front (Table IV, Figure 18).
    Hash {
        /// xxh3 of 64 bits (Collet): the paper's choice for the table in front.
        Xxh3 = "xxh3";
        /// xxh64 (Collet).
        Xxh64 = "xxh64";
        /// MurmurHash64A (Appleby), as the C++ library has it: the kernels' own.
        Murmur = "murmur", "murmurHash";
        /// 33 h + c (Bernstein), byte by byte.
        Djb2 = "djb2";
        /// SipHash-1-2 (Aumasson and Bernstein), Redis's own.
        Sip = "sip", "sipHash";
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn a_name_leads_back_to_what_it_names() {
        fn read<'d, T: Deserialize<'d>>(name: &'d str) -> Result<T, Error> {
            let name: StrDeserializer<'d, Error> = name.into_deserializer();
            T::deserialize(name)
        }
        for container in Container::ALL {
            assert_eq!(read(container.name()), Ok(container));
        }
        for variant in Variant::ALL {
            assert_eq!(read(variant.name()), Ok(variant));
        }
        for distribution in Distribution::ALL {
            assert_eq!(read(distribution.name()), Ok(distribution));
        }
        for hash in Hash::ALL {
            assert_eq!(read(hash.name()), Ok(hash));
        }
        assert!(read::<Distribution>("pareto").is_err());
        assert_eq!((Variant::Known.title(), Variant::Alone.title()), ("address known", "alone"));
    }
}
