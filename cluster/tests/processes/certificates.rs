//! The certificate of all nodes here, in a folder of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// The variable with the folder, for the processes of a test.
pub const GIVEN: &str = "GREENROOM_FAULTS_CERTIFICATES";

/// The names of the nodes.
const NAMES: [&str; 5] = ["shop", "desk", "a", "b", "c"];

/// Returns the files of the certificate, its key and the authority.
pub fn files() -> [PathBuf; 3] {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        // A process that was started by a test has those of the test.
        if let Some(folder) = std::env::var_os(GIVEN) {
            return folder.into();
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("certificates-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write(&in_folder(&folder));
        folder
    });
    in_folder(folder)
}

fn in_folder(folder: &Path) -> [PathBuf; 3] {
    ["node.pem", "node.key", "authority.pem"].map(|file| folder.join(file))
}

fn write([certificate, key, authority]: &[PathBuf; 3]) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_key = KeyPair::generate().unwrap();
    let own = params.self_signed(&own_key).unwrap();
    let issuer = Issuer::new(params, own_key);
    let node_key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(NAMES.map(String::from)).unwrap();
    let node = params.signed_by(&node_key, &issuer).unwrap();
    fs::write(authority, own.pem()).unwrap();
    fs::write(certificate, node.pem()).unwrap();
    fs::write(key, node_key.serialize_pem()).unwrap();
}
