//! The certificates of the two nodes with TLS and of the NATS server, and the authority that has
//! signed them.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::Outcome;

/// Returns the path of a file here.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("target/certificates")
        .join(name)
}

/// Writes all files anew.
pub fn write() -> Outcome<()> {
    fs::create_dir_all(path(""))?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    fs::write(path("authority.pem"), authority.pem())?;
    for (node, name) in [
        ("server", "server"),
        ("client", "client"),
        ("nats", "127.0.0.1"),
    ] {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.to_owned()])?;
        let certificate = certificate.signed_by(&key, &authority)?;
        fs::write(path(&format!("{node}.pem")), certificate.pem())?;
        fs::write(path(&format!("{node}.key")), key.serialize_pem())?;
    }
    Ok(())
}
