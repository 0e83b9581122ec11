//! The certificate of the nodes at sockets, in a folder of the parent.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Returns the files of the certificate, its key and the authority.
pub fn files(folder: &Path) -> [PathBuf; 3] {
    ["node.pem", "node.key", "authority.pem"].map(|file| folder.join(file))
}

/// Writes the certificate of nodes with these names.
pub fn write(folder: &Path, names: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let [certificate, key, authority] = files(folder);
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_key = KeyPair::generate()?;
    let own = params.self_signed(&own_key)?;
    let issuer = Issuer::new(params, own_key);
    let node_key = KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let node = CertificateParams::new(names)?.signed_by(&node_key, &issuer)?;
    std::fs::write(authority, own.pem())?;
    std::fs::write(certificate, node.pem())?;
    std::fs::write(key, node_key.serialize_pem())?;
    Ok(())
}
