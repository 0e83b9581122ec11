//! Certificates: both sides of a link show one, and the name of a node is in its own.
//!
//! A certificate is good if the authority has signed it, whatever host it was dialled at. Its DNS
//! names are the names of the node that it stands for. They are compared with the hello.

use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_io::Async;
use futures_rustls::pki_types::pem::{self, PemObject};
use futures_rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use futures_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use futures_rustls::rustls::client::{
    Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use futures_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use futures_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use futures_rustls::rustls::{
    ClientConfig, CommonState, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use futures_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::error::RenewError;
use crate::link::lock;

/// The certificates of a node, and the files that they come from.
pub(crate) struct Tls {
    /// The name of the node.
    name: String,
    /// The files of the certificate, of its key and of the authority.
    files: [PathBuf; 3],
    configs: Mutex<Configs>,
}

#[derive(Clone)]
struct Configs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files of the certificate, of its key and of the authority.
    pub(crate) fn read(files: [PathBuf; 3], name: &str) -> Result<Self, RenewError> {
        let configs = Configs::read(&files, name)?;
        Ok(Tls {
            name: name.into(),
            files,
            configs: Mutex::new(configs),
        })
    }

    /// Reads the files anew. If one cannot be used, all stays as it was.
    pub(crate) fn renew(&self) -> Result<(), RenewError> {
        let configs = Configs::read(&self.files, &self.name)?;
        *lock(&self.configs) = configs;
        Ok(())
    }

    fn configs(&self) -> Configs {
        lock(&self.configs).clone()
    }

    pub(crate) async fn accept(
        &self,
        socket: Async<TcpStream>,
    ) -> io::Result<TlsStream<Async<TcpStream>>> {
        let acceptor = TlsAcceptor::from(self.configs().server);
        Ok(acceptor.accept(socket).await?.into())
    }

    pub(crate) async fn connect(
        &self,
        socket: Async<TcpStream>,
    ) -> io::Result<TlsStream<Async<TcpStream>>> {
        let connector = TlsConnector::from(self.configs().client);
        // It is neither sent nor compared: the name in the hello is.
        let any = ServerName::try_from("node.invalid").map_err(io::Error::other)?;
        Ok(connector.connect(any, socket).await?.into())
    }
}

/// Returns whether the certificate of the peer has this DNS name.
pub(crate) fn stands_for(peer: &CommonState, name: &str) -> bool {
    let certificate = peer.peer_certificates().and_then(|chain| chain.first());
    certificate.is_some_and(|certificate| has_name(certificate, name))
}

fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let parsed = ParsedCertificate::try_from(certificate);
    let name = ServerName::try_from(name);
    let verified = parsed.and_then(|parsed| match name {
        Ok(name) => verify_server_name(&parsed, &name),
        Err(_) => Err(Error::General("no DNS name".into())),
    });
    verified.is_ok()
}

impl Configs {
    /// Reads the three files, and makes of them what both sides of a link need.
    fn read(
        [certificate, key_file, authority]: &[PathBuf; 3],
        name: &str,
    ) -> Result<Configs, RenewError> {
        let wrong = |path: &PathBuf, why: &dyn std::fmt::Display| {
            RenewError::new(path.display().to_string(), why)
        };
        let read = |path: &PathBuf| {
            let chain = CertificateDer::pem_file_iter(path).map_err(|e| wrong(path, &e))?;
            let chain = chain
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| wrong(path, &e))?;
            match chain.is_empty() {
                true => Err(wrong(path, &"it has no certificate")),
                false => Ok(chain),
            }
        };
        let chain = read(certificate)?;
        // Other nodes would refuse it.
        if !has_name(&chain[0], name) {
            let why = format!("it has no DNS name {name:?}, which is the name of the node");
            return Err(wrong(certificate, &why));
        }
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| match error {
            pem::Error::NoItemsFound => wrong(key_file, &"it has no key, or an encrypted one"),
            error => wrong(key_file, &error),
        })?;
        let mut roots = RootCertStore::empty();
        for root in read(authority)? {
            roots.add(root).map_err(|e| wrong(authority, &e))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let clients = clients.build().map_err(|e| wrong(authority, &e))?;
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong(certificate, &e))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|e| wrong(key_file, &e))?;
        let verifier = Arc::new(Verifier {
            roots,
            provider: provider.clone(),
        });
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong(certificate, &e))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(chain, key)
            .map_err(|e| wrong(key_file, &e))?;
        // No name of a node is sent in the clear, and no session outlives its link.
        client.enable_sni = false;
        client.resumption = Resumption::disabled();
        Ok(Configs {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

/// Verifies what rustls does by default, but for the name of the host.
#[derive(Debug)]
struct Verifier {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
