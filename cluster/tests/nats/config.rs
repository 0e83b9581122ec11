//! The program `greenroom-cluster nats-config`: what it prints, and what it finds lacking.

use std::process::Command;

use crate::certificates::{files_of, folder};
use crate::server::Server;
use crate::support::run;

/// Runs the program. Returns its exit code, and what it has written.
fn nats_config(arguments: &[&str]) -> (i32, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom-cluster"));
    let output = program.arg("nats-config").args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// Returns the configuration for two nodes, as the program prints it.
fn printed() -> String {
    let (code, config) = nats_config(&["--nodes", "shop,desk"]);
    assert_eq!(code, 0, "{config}");
    Server::with_files(folder(), config)
}

/// Checks a server of this configuration as the node `shop`.
async fn check(config: &str) -> (i32, String) {
    let server = Server::with(config);
    let address = server.address();
    let checked = greenroom::unblock(move || {
        let files = files_of("shop").map(|file| file.to_str().unwrap().to_owned());
        let [certificate, key, authority] = &files;
        nats_config(&[
            "--check",
            &address,
            "--nodes",
            "shop",
            "--identity",
            certificate,
            key,
            authority,
        ])
    });
    checked.await
}

#[test]
fn a_server_of_the_printed_configuration_lacks_nothing() {
    run(async {
        assert_eq!(check(&printed()).await, (0, String::new()));
    });
}

#[test]
fn a_check_names_all_that_a_running_server_lacks() {
    run(async {
        let config = printed();
        let imports = config
            .lines()
            .find(|line| line.contains("imports:"))
            .unwrap();
        let config = config
            .replace(imports, "")
            .replace("max_payload: 1MB", "max_payload: 64KB")
            .replace("permissions: {", "permissions: { allow_responses: true,")
            .replace("publish: [", "publish: [\"gr.to.*.a\", ")
            .replace(", \"gr.gone\"", "");
        let (code, lacks) = check(&config).await;
        assert_eq!(code, 1, "{lacks}");
        for lack in [
            "max_payload is 65536",
            "the user may answer any question",
            "the user may also publish \"gr.to.*.a\"",
            "the user may not subscribe \"gr.gone\"",
            "the account does not receive which connections end",
        ] {
            assert!(lacks.contains(lack), "{lack} is not in:\n{lacks}");
        }
        assert_eq!(lacks.lines().count(), 5, "{lacks}");
    });
}

#[test]
fn a_check_of_a_node_that_the_server_does_not_know_is_an_error() {
    run(async {
        let config = Server::secure_config(&["desk"]);
        let (code, error) = check(&config).await;
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("cannot connect with"), "{error}");
    });
}
