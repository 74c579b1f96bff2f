//! What a run is carried out on: the one table of drivers, and what a target is to the run.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use plimsoll_driver::mock::MockDriver;
use plimsoll_driver::null::NullDriver;
use plimsoll_driver::{Admin, Completion, Driver, DriverError, Operation, Session, Settled};
use plimsoll_driver_s3::{S3Config, S3Driver};
use plimsoll_driver_seaweed::{FilerConfig, FilerDriver, SeaweedConfig, SeaweedDriver};
use plimsoll_driver_swift::{SwiftConfig, SwiftDriver};
use plimsoll_model::{Ability, EndpointId, SharedClock, SocketsSeen, TargetKind};
use plimsoll_oracle::{ScriptedDriver, ScriptedFiles};
use plimsoll_record::schema;

use crate::{ConductError, RunTime, Stop, Stopped};

/// Makes a driver and a session of any kind out of the drivers there are: a line each.
macro_rules! drivers {
    ($($(#[$doc:meta])* $kind:ident: $driver:ty,)*) => {
        /// The way to a target of any kind.
        pub enum AnyDriver {
            $($(#[$doc])* $kind($driver),)*
        }

        /// A session of any kind.
        #[expect(clippy::large_enum_variant, reason = "all but the largest are for tests")]
        pub enum AnySession {
            $($(#[$doc])* $kind(<$driver as Driver>::Session),)*
        }

        $(impl From<$driver> for AnyDriver {
            fn from(driver: $driver) -> Self {
                Self::$kind(driver)
            }
        })*

        impl Driver for AnyDriver {
            type Session = AnySession;

            fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<AnySession> {
                match self {
                    $(Self::$kind(driver) => {
                        let sessions = driver.open_sessions(clock, count);
                        sessions.into_iter().map(AnySession::$kind).collect()
                    })*
                }
            }

            fn endpoints(&self) -> Vec<String> {
                match self {
                    $(Self::$kind(driver) => driver.endpoints(),)*
                }
            }

            fn keep_names(&self, path: &Path, file: File) {
                match self {
                    $(Self::$kind(driver) => driver.keep_names(path, file),)*
                }
            }

            fn connections_max(&self, sessions: u64, threads: u64) -> u64 {
                match self {
                    $(Self::$kind(driver) => driver.connections_max(sessions, threads),)*
                }
            }

            fn sockets_seen(&self) -> SocketsSeen {
                match self {
                    $(Self::$kind(driver) => driver.sockets_seen(),)*
                }
            }

            fn offers(&self) -> Option<&'static [Ability]> {
                match self {
                    $(Self::$kind(driver) => driver.offers(),)*
                }
            }
        }

        impl Session for AnySession {
            async fn execute(
                &mut self,
                bucket: Option<&str>,
                operation: Operation<'_>,
            ) -> Completion {
                match self {
                    $(Self::$kind(session) => session.execute(bucket, operation).await,)*
                }
            }

            fn endpoint(&self) -> EndpointId {
                match self {
                    $(Self::$kind(session) => session.endpoint(),)*
                }
            }

            async fn settle(&mut self) -> Settled {
                match self {
                    $(Self::$kind(session) => session.settle().await,)*
                }
            }
        }
    };
}

drivers! {
    /// An object store that speaks S3.
    S3: S3Driver,
    /// SeaweedFS by its own protocol.
    Seaweed: SeaweedDriver,
    /// SeaweedFS by its filers.
    Filer: FilerDriver,
    /// An object store that speaks Swift.
    Swift: SwiftDriver,
    /// Nothing: every operation succeeds at once.
    Null: NullDriver,
    /// Nothing, which takes its time or fails.
    Mock: MockDriver,
    /// A scripted store in virtual time.
    Scripted: ScriptedDriver,
}

impl fmt::Debug for AnyDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.endpoints().join(", "))
    }
}

/// Makes an administration of a bucket of the target, its own where none is named, for the thread
/// that calls.
pub type AdminOf =
    Arc<dyn Fn(Option<&str>, &SharedClock) -> Result<Box<dyn Admin>, ConductError> + Send + Sync>;

/// A store, as a run needs it.
pub struct Store {
    /// The way to it.
    pub driver: AnyDriver,
    /// Who administers it; `None` where there is nothing to administer.
    pub admin: Option<AdminOf>,
    /// The bucket of sets that name none; empty where there are no buckets.
    pub bucket: String,
    /// Whether others see what the run writes into it.
    pub is_shared: bool,
    /// What the record says of it, but for the run's own prefix.
    pub record: schema::Target,
}

impl Store {
    /// Returns the S3 store of that configuration; `is_shared` tells whether others see it.
    pub fn s3(config: S3Config, is_shared: bool) -> Result<Self, ConductError> {
        let open = |config: S3Config| {
            S3Driver::new(config).map_err(|error| ConductError::Caller(error.into()))
        };
        let driver = open(config.clone())?;
        let signing = if config.sign_payload { "sha256" } else { "unsigned" };
        let bucket = config.bucket.clone();
        let record = schema::Target {
            bucket: Some(bucket.clone()),
            region: config.region.clone(),
            lookup: Some(config.lookup),
            tls: Some(config.tls.is_some()),
            payload_signing: Some(signing.to_owned()),
            embedded: !is_shared,
            ..schema::Target::bare(TargetKind::S3, driver.endpoints())
        };
        let admin: AdminOf = Arc::new(move |bucket, clock| {
            let mut config = config.clone();
            config.bucket = bucket.map_or(config.bucket, str::to_owned);
            Ok(Box::new(open(config)?.admin(clock)))
        });
        Ok(Self { driver: driver.into(), admin: Some(admin), bucket, is_shared, record })
    }

    /// Opens the SeaweedFS of that configuration, which a request to stop gives up.
    pub fn seaweed(
        config: SeaweedConfig,
        time: &RunTime,
        stop: &Stop,
    ) -> Result<Self, ConductError> {
        let bucket = config.collection.clone();
        let driver = opened(SeaweedDriver::open(config, &time.clock, time.wall_epoch), stop)?;
        let record = schema::Target {
            bucket: Some(bucket.clone()).filter(|name| !name.is_empty()),
            ..schema::Target::bare(TargetKind::Seaweedfs, driver.endpoints())
        };
        let of_admin = driver.clone();
        let admin: AdminOf =
            Arc::new(move |collection, clock| Ok(Box::new(of_admin.admin(clock, collection))));
        // What a run writes is known by ids that nobody else was told.
        let is_shared = false;
        Ok(Self { driver: driver.into(), admin: Some(admin), bucket, is_shared, record })
    }

    /// Returns the filers of that configuration.
    pub fn filer(config: FilerConfig, time: &RunTime) -> Self {
        let (bucket, tls) = (config.directory.clone(), config.tls.is_some());
        let driver = FilerDriver::new(config, time.wall_epoch);
        let record = schema::Target {
            bucket: Some(bucket.clone()),
            tls: Some(tls),
            ..schema::Target::bare(TargetKind::SeaweedfsFiler, driver.endpoints())
        };
        let of_admin = driver.clone();
        let admin: AdminOf = Arc::new(move |directory, clock| {
            let admin = of_admin.admin(clock, directory);
            Ok(Box::new(admin.map_err(|error| ConductError::Caller(error.into()))?))
        });
        Self { driver: driver.into(), admin: Some(admin), bucket, is_shared: true, record }
    }

    /// Opens the Swift of that configuration: signs in where somebody has to. A request to stop
    /// gives it up.
    pub fn swift(config: SwiftConfig, time: &RunTime, stop: &Stop) -> Result<Self, ConductError> {
        let bucket = config.container.clone();
        let driver = opened(SwiftDriver::open(config, &time.clock), stop)?;
        let record = schema::Target {
            bucket: Some(bucket.clone()),
            tls: Some(driver.speaks_tls()),
            ..schema::Target::bare(TargetKind::Swift, driver.endpoints())
        };
        let of_admin = driver.clone();
        let admin: AdminOf = Arc::new(move |container, clock| {
            let admin = of_admin.admin(clock, container);
            Ok(Box::new(admin.map_err(ConductError::Target)?))
        });
        Ok(Self { driver: driver.into(), admin: Some(admin), bucket, is_shared: true, record })
    }

    /// Returns what stands for a store in a workload that is only judged: nobody asks it anything.
    pub(crate) fn judged(kind: TargetKind, bucket: String) -> Self {
        let asked = || crate::error::refused("a workload that is only judged asks no store");
        let admin: AdminOf = Arc::new(move |_, _| asked());
        Self { admin: Some(admin), bucket, ..Self::without_admin(NullDriver, kind) }
    }

    /// Returns its own bucket as sentences have it.
    pub(crate) fn root(&self) -> String {
        format!("{} `{}`", self.record.root_word(), self.record.root_name(&self.bucket))
    }

    /// Returns a store that nobody has to administer.
    pub fn without_admin(driver: impl Into<AnyDriver>, kind: TargetKind) -> Self {
        let driver = driver.into();
        let record = schema::Target::bare(kind, driver.endpoints());
        Self { driver, admin: None, bucket: String::new(), is_shared: false, record }
    }
}

/// Carries out what opens a driver, which a request to stop gives up.
fn opened<T>(
    opening: impl Future<Output = Result<T, DriverError>>,
    stop: &Stop,
) -> Result<T, ConductError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ConductError::event_loop)?;
    let opened = stop.unless_stopped(&runtime, opening);
    // A lookup of a name that was given up goes on for as long as the resolver takes.
    runtime.shutdown_background();
    match opened {
        Ok(opened) => opened.map_err(ConductError::Target),
        Err(Stopped) => Err(ConductError::StoppedBefore),
    }
}

/// What operations on files go to; which files these are the workload says.
#[derive(Clone)]
pub enum FilesOn {
    /// This machine.
    Machine,
    /// Nothing: every operation succeeds at once, so what remains is the cost of the instrument.
    Null,
    /// Scripted files in virtual time.
    Scripted(ScriptedFiles),
    /// The machines of the agents that carry the run out.
    Agents,
}

/// A target of a run.
pub enum Target {
    /// A store.
    Store(Box<Store>),
    /// Directories and devices, which the workload names.
    Files(FilesOn),
}

impl Target {
    /// Returns the store, where it is one.
    pub fn store(&self) -> Option<&Store> {
        match self {
            Self::Store(store) => Some(store),
            Self::Files(_) => None,
        }
    }

    /// Returns what operations on files go to, where it is files.
    pub(crate) fn files(&self) -> Option<&FilesOn> {
        match self {
            Self::Store(_) => None,
            Self::Files(on) => Some(on),
        }
    }
}

impl From<Store> for Target {
    fn from(store: Store) -> Self {
        Self::Store(Box::new(store))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_request_to_stop_gives_opening_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let master = format!("{}.1", silent.local_addr().unwrap()).parse().unwrap();
        let stop = Stop::default();
        let asked = stop.clone();
        let server = std::thread::spawn(move || {
            let connection = silent.accept().unwrap();
            asked.request();
            connection
        });
        let config = SeaweedConfig::new(vec![master], "c");
        let opened = Store::seaweed(config, &RunTime::machine(), &stop);
        assert!(matches!(opened, Err(ConductError::StoppedBefore)));
        drop(server.join().unwrap());
    }
}
