//! `lookaside-lab replay`.

use std::process::ExitCode;

use lab::drive::{
    DriveError, Endpoint, Items, LARGEST_VALUE, ProcessClock, RecordedTrace, Replay, ReplayReport,
    ServerCommand, SideBySide, SizesOf, sizes,
};
use lab::measure::{pin, turns};
use lookaside_cli::output::{Outcome, print};
use workload::sizes::Fixed;

use super::load::progress_bar;
use super::target::Target;
use crate::trace::Reading;

#[derive(clap::Args)]
#[command(after_help = "\
Every get that misses is followed by a set, as an application's would be. Requests go out in windows, in which
no key comes twice, so that hits are those of the trace one by one. A key's value has always the same size. A
generated trace has the shape of a recorded one: generated/orm-busy, generated/web07, generated/fb-cdn, or of
a published workload: generated/kvcache_reg.
Examples:
  lookaside-lab replay --server 127.0.0.1:11211
  lookaside-lab replay traces/orm-busy.trace.xz --spawn 'lookaside -t 1' --spawn 'memcached -t 1 -u root' \\
      --memory-share 1/8,1/4,1/2 --runs 3 --server-core 0 --client-core 1")]
pub(crate) struct Arguments {
    /// The trace, in any format that 'lookaside-lab advise' reads: a path, - for standard input, one that is generated,
    /// or a name in the folder of recorded ones (LOOKASIDE_DATA)
    #[arg(default_value = "generated/orm-busy")]
    trace: String,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    target: Target,
    /// Requests in a window; 1 sends them one by one
    #[arg(long, default_value = "16", value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,
    /// No more requests than this
    #[arg(long, value_name = "REQUESTS")]
    most: Option<usize>,
    /// Bytes of values: one of CacheLib's workloads, etc (Facebook's), a number, or a range like 10-100
    #[arg(long, value_name = "SIZES", default_value = "kvcache_reg")]
    value_sizes: String,
    /// Every value's size times this
    #[arg(long, value_name = "FACTOR", default_value_t = 16.0)]
    value_scale: f64,
    /// Cut values that would be larger, in bytes; without it they are sent as they are, and servers refuse what is too
    /// large for them
    #[arg(long, value_name = "BYTES")]
    cut_values_at: Option<u64>,
    /// Start each server with so much memory (-m): parts of what all items take, 59 bytes each beside key and value
    #[arg(long, value_name = "1/8,...", value_delimiter = ',', value_parser = share, requires = "spawn")]
    memory_share: Vec<Share>,
    /// How often to replay against each server; they take turns
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// The core that the player is pinned to
    #[arg(long, value_name = "CORE")]
    client_core: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A part of the working set.
#[derive(Clone, Copy)]
struct Share {
    numerator: u64,
    denominator: u64,
}

fn share(text: &str) -> Result<Share, String> {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    match (numerator.parse(), denominator.parse()) {
        (Ok(numerator), Ok(denominator)) if denominator > 0 && numerator > 0 => {
            Ok(Share { numerator, denominator })
        }
        _ => Err("a share is written like 1/8".into()),
    }
}

impl Arguments {
    fn run(&self) -> Outcome {
        // Keys are those of the trace.
        let values = sizes(&self.value_sizes, SizesOf::Values, self.value_scale)?;
        let items = Items::new(Box::new(Fixed(0)), values);
        let items = items.cut_values_at(self.cut_values_at.unwrap_or(LARGEST_VALUE));
        let bar = progress_bar();
        bar.set_message("reading the trace");
        bar.tick();
        let trace =
            RecordedTrace::read(&self.trace, &self.reading.choice(), self.most.unwrap_or(usize::MAX))?;
        let replay = Replay::new(&trace, &items, self.depth.into());
        if let Some(core) = self.client_core {
            pin(core)?;
        }
        let mut reports = Vec::new();
        let mut play = |name: &str, endpoint: &Endpoint, clock: Option<ProcessClock>, mebibytes| {
            bar.set_message(format!("{name}: {}", self.trace));
            reports.push(ReplayReport { mebibytes, ..replay.play(name, endpoint, clock, &bar)? });
            Ok::<_, DriveError>(())
        };
        let commands = self.target.commands()?;
        let memory: Vec<_> = if self.memory_share.is_empty() {
            vec![None]
        } else {
            let set = replay.working_set();
            self.memory_share
                .iter()
                .map(|share| Some(set.mebibytes(share.numerator, share.denominator)))
                .collect()
        };
        for run in 0..usize::from(self.runs) {
            if commands.is_empty() {
                let servers = self.target.servers()?;
                for (number, endpoint) in servers.endpoints.iter().enumerate() {
                    play(&endpoint.to_string(), endpoint, servers.clocks.get(number).copied(), None)?;
                }
            }
            for &mebibytes in &memory {
                for turn in turns(commands.len(), run) {
                    let command = with_memory(commands[turn].clone(), mebibytes);
                    let server = command.start(self.target.server_core())?;
                    play(&commands[turn].line(), server.endpoint(), Some(server.clock()?), mebibytes)?;
                }
            }
        }
        bar.finish_and_clear();
        if self.json {
            let json = serde_json::json!({ "trace": self.trace, "replays": reports });
            print(format_args!("{json:#}\n"))?;
        } else {
            let set = replay.working_set();
            let mebibytes = set.item_bytes() as f64 / f64::from(1 << 20);
            print(format_args!(
                "{}: {} requests, {} keys; all items take {mebibytes:.0} MiB; {} other requests skipped\n",
                self.trace,
                trace.requests(),
                set.keys,
                trace.skipped(),
            ))?;
            print(format_args!("{}", SideBySide(&reports)))?;
            print(format_args!(
                "every reply was checked against its request, and every value against its key\n"
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn with_memory(command: ServerCommand, mebibytes: Option<u64>) -> ServerCommand {
    match mebibytes {
        Some(mebibytes) => command.with(["-m".to_owned(), mebibytes.to_string()]),
        None => command,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    arguments.run()
}
