//! Driving servers: a load generator and a trace player for anything that speaks memcached's classic protocol. The load
//! generator speaks to Redis, too.
//!
//! A server under a load generator that costs as much as itself is not measured. So requests are drawn and rendered
//! before the clock starts, replies are only looked at as far as they must be, and what the generator costs is part of
//! every report. Where correctness is the question, all replies and values are checked instead.
//!
//! | module | idea |
//! |---|---|
//! | `load` | a load, and what it came to |
//! | `replay`, `trace` | a recorded trace against a server: get, and on a miss set; traces made ready for it |
//! | `demand`, `items` | what is asked for; keys and values |
//! | `contents` | values that say what they are |
//! | `script` | requests, rendered in advance |
//! | `driver` | one thread's event loop |
//! | `counter`, `checker` | counting replies; checking them |
//! | `resp` | the same for Redis, and its requests |
//! | `tally`, `latency` | what came back; how long it took |
//! | `endpoint`, `statistics` | where servers listen; what they say of themselves |
//! | `process` | servers as processes, and their processor time |

mod checker;
mod contents;
mod counter;
mod demand;
mod driver;
mod endpoint;
mod error;
mod items;
mod latency;
mod load;
mod process;
mod replay;
mod resp;
mod script;
mod statistics;
mod tally;
mod trace;

pub use contents::{Contents, WrongValue};
pub use demand::Demand;
pub use endpoint::Endpoint;
pub use error::{DriveError, WrongReply};
pub use items::{Items, LARGEST_VALUE, SizesOf, sizes};
pub use latency::LatencySummary;
pub use load::{Amount, Filled, Load, LoadReport, PATIENCE};
pub use process::{ProcessClock, ServerCommand, ServerProcess};
pub use replay::{Progress, Replay, ReplayReport, SideBySide};
pub(crate) use resp::append_command;
pub use script::Dialect;
pub use statistics::Statistics;
pub use trace::{ITEM_OVERHEAD, RecordedTrace, WorkingSet};
