//! `lookaside-lab load`.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use lab::drive::{Amount, Demand, Dialect, DriveError, Items, LARGEST_VALUE, Load, SizesOf, sizes};
use lookaside_cli::output::{Outcome, print};
use workload::popularity::{Popularity, YCSB_THETA};

use super::target::Target;

#[derive(clap::Args)]
#[command(after_help = "\
An operation is a key asked for, or a set. Requests are drawn and rendered before the clock starts; replies are counted,
and with --verify checked. Examples:
  lookaside-lab load --spawn 'memcached -t 1 -m 1024' --preload --connections 50 --server-core 0 --client-core 1
  lookaside-lab load --server 127.0.0.1:11211 --preload --depth 32 --verify --get-share 0.9
  lookaside-lab load --server 127.0.0.1:11211 --keys-per-get 100 --distribution zipfian --json
  lookaside-lab load --server 127.0.0.1:11211 --rate 20000 --connections 50 --duration 30s")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Connections
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Gets that a connection sends at once, before it waits for the replies
    #[arg(long, default_value_t = 1)]
    depth: usize,
    /// Keys in a get
    #[arg(long, default_value_t = 1)]
    keys_per_get: usize,
    /// Threads that the connections are dealt out to
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Cores that the threads are pinned to
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    client_core: Vec<usize>,
    /// Different keys
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of keys: a number, a range like 10-100, or etc (Facebook's)
    #[arg(long, value_name = "SIZES", default_value = "16")]
    key_size: String,
    /// Bytes of values: a number, a range like 10-100, etc (Facebook's), or one of CacheLib's workloads like
    /// kvcache_reg
    #[arg(long, value_name = "SIZES", default_value = "32")]
    value_sizes: String,
    /// Every value's size times this
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    value_scale: f64,
    /// Cut values that would be larger, in bytes; without it they are sent as they are, and servers refuse what is too
    /// large for them
    #[arg(long, value_name = "BYTES")]
    cut_values_at: Option<u64>,
    /// Which keys are asked for
    #[arg(long, default_value = "uniform")]
    distribution: Distribution,
    /// The exponent of all distributions but uniform
    #[arg(long, default_value_t = YCSB_THETA)]
    theta: f64,
    /// The share of gets among the operations; the others are sets. YCSB's workloads A, B and C are shares of 0.5, 0.95
    /// and 1 of the distribution 'scrambled'
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    get_share: f64,
    /// How long to measure; replies that are not there --patience after its end are an error
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10s", conflicts_with = "operations")]
    duration: Duration,
    /// How long the server may say nothing before that is an error
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "10s")]
    patience: Duration,
    /// How many operations to measure, instead of how long
    #[arg(long)]
    operations: Option<u64>,
    /// How long to warm up, with other draws than those that are measured
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1s")]
    warm_up: Duration,
    /// Store every key before anything else
    #[arg(long)]
    preload: bool,
    /// Check every reply against its request, and every value against its key
    #[arg(long)]
    verify: bool,
    /// Everything drawn is a function of this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Operations a second, whether or not the server keeps up; latency then counts from when a request was due
    #[arg(long)]
    rate: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Distribution {
    /// All keys alike
    Uniform,
    /// The first key is the hottest
    Zipfian,
    /// Zipfian, strewn over the keys
    Permuted,
    /// Zipfian, strewn as YCSB does it, with collisions
    Scrambled,
}

impl Arguments {
    fn demand(&self) -> Result<Demand, DriveError> {
        if !(0.0..=1.0).contains(&self.get_share) {
            return Err(DriveError::Settings(format!(
                "a share of gets is from 0 to 1, not {}",
                self.get_share
            )));
        }
        let popularity = match self.distribution {
            Distribution::Uniform => Popularity::uniform(self.keys),
            Distribution::Zipfian => Popularity::zipfian(self.keys, self.theta),
            Distribution::Permuted => Popularity::permuted(self.keys, self.theta, self.seed),
            Distribution::Scrambled => Popularity::scrambled(self.keys, self.theta),
        };
        Ok(Demand { popularity: popularity?, gets: self.get_share })
    }

    fn run(&self) -> Outcome {
        let items = Items::new(
            sizes(&self.key_size, SizesOf::Keys, 1.0)?,
            sizes(&self.value_sizes, SizesOf::Values, self.value_scale)?,
        );
        let items = items.cut_values_at(self.cut_values_at.unwrap_or(LARGEST_VALUE));
        let demand = self.demand()?;
        let servers = self.target.servers()?;
        let load = Load {
            servers: servers.endpoints.clone(),
            dialect: Dialect::Classic,
            records: self.keys,
            items,
            demand,
            connections: self.connections,
            depth: self.depth,
            keys_per_get: self.keys_per_get,
            threads: self.threads,
            cores: self.client_core.clone(),
            seed: self.seed,
            warm_up: Amount::Time(self.warm_up),
            measured: self.operations.map_or(Amount::Time(self.duration), Amount::Operations),
            rate: self.rate,
            check: self.verify,
            patience: self.patience,
        };
        let bar = progress_bar();
        let filled = self.preload.then(|| load.fill(&bar)).transpose()?;
        let report = load.run(&servers.clocks, &bar)?;
        bar.finish_and_clear();
        if self.json {
            let json = serde_json::json!({ "filled": filled, "report": report });
            print(format_args!("{json:#}\n"))?;
        } else {
            if let Some(filled) = filled {
                print(format_args!("filled with {} records, {} refused\n", filled.stored, filled.refused))?;
            }
            print(format_args!("{report}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A bar on standard error, which shows itself only if that is a terminal.
pub(crate) fn progress_bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("[{elapsed_precise}] {bar:30} {human_pos}/{human_len} {wide_msg}")
            .expect("the template is well-formed");
    ProgressBar::new(0).with_style(style)
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    arguments.run()
}
