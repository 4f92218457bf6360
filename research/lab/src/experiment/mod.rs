//! Experiments: one definition, as data, for each table or figure that is measured.
//!
//! A definition (a TOML file in `research/experiments/`) names what it reproduces, the *kind* of experiment, its
//! parameters, the rows it promises, what is expected of them, and the paper's numbers to print beside them. A *kind*
//! is code: a function from parameters to measurements. The two meet in a [`Laboratory`], so that another crate can
//! bring kinds of its own, and every definition is run the same way: in full, or in its quick size, in which continuous
//! integration runs all of them.
//!
//! | module | idea |
//! |---|---|
//! | `definition` | the TOML file |
//! | `quantity` | naming a measured number, a ratio or a difference; expectations of it |
//! | `reference` | the papers' numbers, read from CSV |
//! | `catalogue` | finding the definitions |
//! | `files` | their files, on the disk or built in |
//! | `label` | what the points of a quick run are called |
//! | `session` | what a kind sees while it runs |
//! | `contest` | what every comparison does: turns, rates, warm-ups, checks |
//! | `laboratory` | kinds by name; running a definition |
//! | `shortfall` | what kept results have less of than their definition asks for |

mod catalogue;
mod contest;
mod definition;
mod error;
mod files;
mod label;
mod laboratory;
mod quantity;
mod reference;
mod session;
mod shortfall;

pub use catalogue::Catalogue;
pub use contest::{expect, rate, timed, warmed};
pub use definition::{Definition, Exhibit, Promise, Scale};
pub use error::ExperimentError;
pub(crate) use files::is_file;
pub use files::{BUILT_IN, FOLDER, folder_for};
pub(crate) use label::Labels;
pub use laboratory::{Laboratory, RunKind};
pub use quantity::{Bound, Expectation, Outcome, Quantity, Selector, Verdict};
pub use reference::{Beside, Reference};
pub use session::Session;
