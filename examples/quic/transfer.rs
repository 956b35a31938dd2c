//! A download over QUIC by quinn, which understands transfer.py: `transfer serve`, and `transfer get HOST BYTES`, which
//! prints the duration. The server creates a self-signed certificate, which the client does not verify.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PORT: u16 = 4433;
const PROTOCOL: &[u8] = b"narrows-example";
const CHUNK: &[u8] = &[0; 64 << 10];

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve().await,
        ["get", host, count] => get(host.parse()?, count.parse()?).await,
        _ => Err("usage: transfer serve | transfer get HOST BYTES".into()),
    }
}

async fn serve() -> Result<()> {
    let own = rcgen::generate_simple_self_signed(vec!["server".into()])?;
    let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let mut settings = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.into()], key)?;
    settings.alpn_protocols = vec![PROTOCOL.into()];
    let settings = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(settings)?));
    let endpoint = Endpoint::server(settings, SocketAddr::new("::".parse()?, PORT))?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            // A client that leaves is no error of the server's.
            if let Ok(connection) = incoming.await {
                streams(connection).await;
            }
        });
    }
    Ok(())
}

async fn streams(connection: Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(async move {
            if let Err(error) = answer(send, receive).await {
                eprintln!("{error}");
            }
        });
    }
}

/// Sends as many bytes as the number that arrives on the stream.
async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    let asked = receive.read_to_end(20).await?;
    let mut left: usize = std::str::from_utf8(&asked)?.parse()?;
    while left > 0 {
        left -= send.write(&CHUNK[..left.min(CHUNK.len())]).await?;
    }
    Ok(send.finish()?)
}

async fn get(host: IpAddr, count: u64) -> Result<()> {
    let provider = Arc::new(ring::default_provider());
    let mut settings = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    settings.alpn_protocols = vec![PROTOCOL.into()];
    let settings = ClientConfig::new(Arc::new(QuicClientConfig::try_from(settings)?));
    let any: IpAddr = if host.is_ipv4() { "0.0.0.0" } else { "::" }.parse()?;
    let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;

    let begin = Instant::now();
    let connection = endpoint.connect_with(settings, SocketAddr::new(host, PORT), "server")?.await?;
    let connected = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(count.to_string().as_bytes()).await?;
    send.finish()?;
    let mut got = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        got += chunk.bytes.len() as u64;
    }
    let end = Instant::now();
    if got != count {
        return Err(format!("{got} of {count} bytes arrived").into());
    }
    let rate = 8e-6 * count as f64 / (end - connected).as_secs_f64();
    let [first, last] = [connected, end].map(|at| (at - begin).as_secs_f64());
    println!("connected after {first:.3} s, {count} bytes after {last:.3} s ({rate:.2} Mbit/s)");
    connection.close(0u8.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// Verifies signatures, and no names.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
