//! Which servers are driven, for `load` and `replay`: ones that run already, or ones that are started for it.

use std::path::PathBuf;

use lab::drive::{DriveError, Endpoint, ProcessClock, ServerCommand, ServerProcess};

#[derive(clap::Args)]
pub(crate) struct Target {
    /// A server's TCP address; several share the keys among them [default: 127.0.0.1:11211]
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["unix", "spawn"])]
    server: Vec<String>,
    /// A server's Unix socket
    #[arg(long, value_name = "PATH", conflicts_with = "spawn")]
    unix: Option<PathBuf>,
    /// Start a server with this command line and end it afterwards; {port} stands for a free port, and without it
    /// '-p -1' is added. With several, load shares the keys among them, and replay lets them take turns
    #[arg(long, visible_alias = "server-command", value_name = "COMMAND")]
    spawn: Vec<String>,
    /// The process of a server that runs already, to count its processor time
    #[arg(long, value_name = "PID", conflicts_with = "spawn")]
    server_pid: Vec<u32>,
    /// The core that servers are started on
    #[arg(long, value_name = "CORE", requires = "spawn")]
    server_core: Option<usize>,
}

/// Servers to be driven; those that were started end with it.
pub(crate) struct Servers {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) clocks: Vec<ProcessClock>,
    _started: Vec<ServerProcess>,
}

impl Target {
    /// The servers that are to be started.
    pub(crate) fn commands(&self) -> Result<Vec<ServerCommand>, DriveError> {
        self.spawn.iter().map(|line| ServerCommand::parse(line)).collect()
    }

    /// The core that servers are started on.
    pub(crate) fn server_core(&self) -> Option<usize> {
        self.server_core
    }

    /// Finds the servers, or starts them.
    pub(crate) fn servers(&self) -> Result<Servers, DriveError> {
        let started = self.commands()?.into_iter().map(|command| command.start(self.server_core));
        let started = started.collect::<Result<Vec<_>, _>>()?;
        let address = |address: &String| {
            Endpoint::tcp(address).map_err(|error| DriveError::Connect { endpoint: address.clone(), error })
        };
        let mut endpoints: Vec<_> = started.iter().map(|server| server.endpoint().clone()).collect();
        endpoints.extend(self.unix.as_deref().map(Endpoint::unix));
        endpoints.extend(self.server.iter().map(address).collect::<Result<Vec<_>, _>>()?);
        if endpoints.is_empty() {
            endpoints.push(address(&"127.0.0.1:11211".to_owned())?);
        }
        let ids = started.iter().map(ServerProcess::id).chain(self.server_pid.iter().copied());
        let clocks = ids.map(ProcessClock::of).collect::<Result<_, _>>()?;
        Ok(Servers { endpoints, clocks, _started: started })
    }
}
