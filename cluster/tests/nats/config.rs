//! The program `greenroom-cluster nats-config`: what it prints, and what it finds lacking.

use std::process::Command;

use greenroom_cluster::{Nats, OpenError};

use crate::certificates::{files_of, folder};
use crate::server::Server;
use crate::support::run;

/// Where the program finds a password.
const PASSWORD: &str = "NATS_PASSWORD";

/// Runs the program. Returns its exit code, and what it has written.
fn nats_config(arguments: &[&str], password: Option<&str>) -> (i32, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom-cluster"));
    program.arg("nats-config").args(arguments);
    match password {
        Some(password) => program.env(PASSWORD, password),
        None => program.env_remove(PASSWORD),
    };
    let output = program.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// Returns the configuration for two nodes, as the program prints it.
fn printed() -> String {
    let (code, config) = nats_config(&["--nodes", "shop,desk"], None);
    assert_eq!(code, 0, "{config}");
    config
}

/// Checks a server as the node `shop`, which has its certificate.
fn check(server: &Server) -> (i32, String) {
    let files = files_of("shop").map(|file| file.to_str().unwrap().to_owned());
    let address = server.address();
    let mut arguments = vec!["--check", &address, "--nodes", "shop", "--identity"];
    arguments.extend(files.iter().map(String::as_str));
    nats_config(&arguments, None)
}

#[test]
fn the_program_prints_the_configuration_of_its_nodes() {
    assert_eq!(printed(), Nats::server_config(["shop", "desk"]));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_the_usage() {
    for arguments in [
        &[][..],
        &["--nodes", "shop,"],
        &["--check", "localhost", "--nodes", "shop"],
        &["--what"],
    ] {
        let (code, text) = nats_config(arguments, None);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(text.contains("--check SERVER --nodes NAME"), "{text}");
    }
}

#[test]
fn a_server_of_the_printed_configuration_lacks_nothing() {
    run(async {
        let server = Server::with(&Server::with_files(folder(), printed()));
        assert_eq!(server.known("shop").check("shop").await.unwrap(), [""; 0]);
        assert_eq!(check(&server), (0, String::new()));
    });
}

#[test]
fn a_check_names_all_that_a_running_server_lacks() {
    run(async {
        let config = Server::secure_config(&["shop", "desk"]);
        let mut lines = config.lines();
        let imports = lines.find(|line| line.contains("imports:")).unwrap();
        let config = config
            .replace(imports, "")
            .replace("max_payload: 1MB", "max_payload: 64KB")
            .replace("permissions: {", "permissions: { allow_responses: true,")
            .replace("publish: [", "publish: [\"gr.to.*.a\", ")
            .replace("\"gr.watch.shop\"", "\"other\"")
            .replace(", \"gr.gone\"", "");
        let (code, lacks) = check(&Server::with(&config));
        assert_eq!(code, 1, "{lacks}");
        let expected = [
            "max_payload is 65536: larger messages are refused",
            "the user may answer any question: it can speak as another node",
            "the user may not publish \"gr.watch.shop\"",
            "the user may also publish \"gr.to.*.a\"",
            "the user may also publish \"other\"",
            "the user may not subscribe \"gr.gone\"",
            "the account does not receive which connections end",
        ];
        for lack in expected {
            assert!(lacks.contains(lack), "{lack} is not in:\n{lacks}");
        }
        assert_eq!(lacks.lines().count(), expected.len(), "{lacks}");
    });
}

#[test]
fn a_node_with_a_password_checks_its_server_without_a_certificate() {
    run(async {
        let server = Server::with(&Server::password_config(&["shop"]));
        let address = server.address();
        let check = |word| nats_config(&["--check", &address, "--nodes", "shop"], word);
        assert_eq!(check(Some("word of shop")), (0, String::new()));
        let (code, error) = check(Some("another word"));
        assert_eq!(code, 2, "{error}");
        assert!(!error.contains("another word"), "{error}");
    });
}

#[test]
fn a_check_of_a_node_that_the_server_does_not_know_is_an_error() {
    run(async {
        let server = Server::with(&Server::secure_config(&["desk"]));
        let error = server.known("shop").check("shop").await.unwrap_err();
        assert!(matches!(error, OpenError::Server(_)), "{error}");
        let (code, error) = check(&server);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("cannot connect with"), "{error}");
    });
}
