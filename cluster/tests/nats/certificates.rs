//! The certificates of a server and of all nodes here, in a folder of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::network::{HERE, THERE};

/// The variable with the folder, for the processes of a test.
pub const GIVEN: &str = "GREENROOM_NATS_CERTIFICATES";

/// The names of the nodes.
pub const NAMES: [&str; 4] = ["shop", "desk", "a", "b"];

/// The names of the server.
const SERVER: [&str; 4] = ["localhost", "127.0.0.1", HERE, THERE];

/// Returns the folder, with `NAME.pem` and `NAME.key` of each node and `ca.pem`.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // A process that was started by a test has those of the test.
        if let Some(folder) = std::env::var_os(GIVEN) {
            return folder.into();
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("nats-certificates-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write(&folder);
        folder
    })
}

/// Returns the files of the certificate of a node, its key and the authority.
pub fn files_of(name: &str) -> [PathBuf; 3] {
    files_in(folder(), name)
}

/// Returns those in another folder.
pub fn files_in(folder: &Path, name: &str) -> [PathBuf; 3] {
    let files = [
        format!("{name}.pem"),
        format!("{name}.key"),
        "ca.pem".into(),
    ];
    files.map(|file| folder.join(file))
}

/// Returns the files for a process of a test.
pub fn files() -> [PathBuf; 3] {
    files_of("shop")
}

/// Writes new certificates of a new authority.
pub fn write(folder: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_key = KeyPair::generate().unwrap();
    let own = params.self_signed(&own_key).unwrap();
    fs::write(folder.join("ca.pem"), own.pem()).unwrap();
    let issuer = Issuer::new(params, own_key);
    let sign = |file: &str, names: &[&str]| {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).into()).collect();
        let params = CertificateParams::new(names).unwrap();
        let signed = params.signed_by(&key, &issuer).unwrap();
        fs::write(folder.join(format!("{file}.pem")), signed.pem()).unwrap();
        fs::write(folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    };
    sign("server", &SERVER);
    NAMES.iter().for_each(|name| sign(name, &[name]));
}
