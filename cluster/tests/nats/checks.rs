//! What a check tells of a running server, from the program and from `Nats::check`.

use std::process::{Command, Output};

use greenroom_cluster::Nats;

use crate::certificates::files_of;
use crate::server::Server;
use crate::support::run;

/// Runs `greenroom-cluster nats-config` with these arguments.
fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom-cluster"));
    command.arg("nats-config").args(arguments).output().unwrap()
}

/// Checks a server as the node `shop`. Returns the status of the program, and what it prints.
fn check(server: &Server) -> (Option<i32>, String) {
    let files = files_of("shop").map(|file| file.to_str().unwrap().to_owned());
    let address = server.address();
    let mut arguments = vec!["--check", &address, "--nodes", "shop", "--identity"];
    arguments.extend(files.iter().map(String::as_str));
    let output = program(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

#[test]
fn the_program_prints_the_configuration_of_its_nodes() {
    let output = program(&["--nodes", "shop,desk"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text, Nats::server_config(["shop", "desk"]));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_the_usage() {
    for arguments in [
        &[][..],
        &["--nodes", "shop,"],
        &["--check", "localhost", "--nodes", "shop"],
        &["--what"],
    ] {
        let output = program(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("--check SERVER --nodes NAME"), "{text}");
    }
}

#[test]
fn a_server_with_the_printed_configuration_lacks_nothing() {
    run(async {
        let server = Server::secure();
        assert_eq!(server.known("shop").check("shop").await.unwrap(), [""; 0]);
        assert_eq!(check(&server), (Some(0), String::new()));
    });
}

#[test]
fn each_thing_that_a_server_lacks_is_a_line() {
    run(async {
        let config = Server::secure_config(&["shop"]);
        let no_reports = |line: &&str| !line.trim_start().starts_with("imports:");
        let no_reports: Vec<_> = config.lines().filter(no_reports).collect();
        for (config, lack) in [
            (
                config.replace("max_payload: 1MB", "max_payload: 64KB"),
                "max_payload is 65536: larger messages are refused",
            ),
            (
                no_reports.join("\n"),
                "the account does not receive which connections end",
            ),
            (
                config.replace("\"gr.to.*.shop\"", "\"gr.to.*.shop\", \"gr.to.*.desk\""),
                "the user may also publish \"gr.to.*.desk\"",
            ),
            (
                config.replace("\"gr.watch.shop\"", "\"other\""),
                "the user may not publish \"gr.watch.shop\"",
            ),
            (
                config.replace("permissions: {", "permissions: { allow_responses: true,"),
                "it can speak as another node",
            ),
        ] {
            let server = Server::with(&config);
            let (status, text) = check(&server);
            assert_eq!(status, Some(1), "{text}");
            assert!(text.lines().any(|line| line.contains(lack)), "{text}");
        }
    });
}

#[test]
fn a_check_of_a_server_that_does_not_know_the_node_is_an_error() {
    run(async {
        let server = Server::with(&Server::secure_config(&["desk"]));
        let error = server.known("shop").check("shop").await.unwrap_err();
        assert!(
            matches!(error, greenroom_cluster::OpenError::Server(_)),
            "{error}"
        );
        assert_eq!(check(&server).0, Some(2));
    });
}
