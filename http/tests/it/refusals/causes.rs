//! The causes for which a server itself refuses requests, and a request for each.

use std::net::Ipv4Addr;

use greenroom::{Address, Reply};
use greenroom_http::{HttpResponse, ServerBuilder};
use serde::{Deserialize, Deserializer};

use crate::support::{Act, Client, Message, Served, Xy, until};

/// A cause for which a request is refused.
pub struct Cause {
    pub cause: &'static str,
    pub status: u16,
    /// The explanation, or a part of it.
    pub says: &'static str,
    /// The label of its counter: of a limit, or of a caller.
    pub counter: Option<(&'static str, &'static str)>,
    /// Whether the connection goes on.
    pub stays: bool,
    pub send: fn(&Served, &mut Client),
    /// What the server has besides.
    pub serve: fn(ServerBuilder, &Address<Message>) -> ServerBuilder,
}

/// A type whose code panics.
struct Panics;

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("a secret");
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Circle(u8),
    Line(u8),
}

/// Lets the actor for all other types answer with this response.
fn answers_all(
    builder: ServerBuilder,
    address: &Address<Message>,
    response: fn() -> HttpResponse,
) -> ServerBuilder {
    builder.unknown(address, move |_, reply| {
        reply.send(response());
        let how = "answer".into();
        Message::Act(Act { how }, Reply::pair().0)
    })
}

impl Cause {
    const fn new(
        status: u16,
        cause: &'static str,
        says: &'static str,
        send: fn(&Served, &mut Client),
    ) -> Self {
        Cause {
            cause,
            status,
            says,
            counter: None,
            stays: true,
            send,
            serve: |builder, _| builder,
        }
    }

    const fn at(mut self, serve: fn(ServerBuilder, &Address<Message>) -> ServerBuilder) -> Self {
        self.serve = serve;
        self
    }

    const fn limit(mut self, name: &'static str) -> Self {
        self.counter = Some(("limit", name));
        self
    }

    const fn caller(mut self, name: &'static str) -> Self {
        self.counter = Some(("cause", name));
        self
    }

    const fn closes(mut self) -> Self {
        self.stays = false;
        self
    }
}

/// Sends a request with this line and these fields beside its host.
pub fn head(client: &mut Client, line: &str, fields: &str) {
    client.send(format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
    ));
}

pub fn get(client: &mut Client, uri: &str) {
    head(client, &format!("GET {uri}"), "");
}

pub fn post(client: &mut Client, fields: &str, body: &str) {
    let length = body.len();
    head(
        client,
        "POST /Xy",
        &format!("{fields}Content-Length: {length}\r\n"),
    );
    client.send(body);
}

pub const JSON: &str = "Content-Type: application/json\r\n";

/// Has the actor keep the reply to a request of this client.
fn keep(served: &Served, client: &mut Client, fields: &str) {
    let kept = || served.seen.kept.lock().unwrap().len();
    let before = kept();
    head(client, "GET /Act?how=keep", fields);
    until("it is kept", || kept() > before);
}

const FOR: &str = "Forwarded: for=192.0.2.1\r\n";

/// The causes in the order in which a request meets them.
pub const CAUSES: &[Cause] = &[
    Cause::new(
        503,
        "a connection too many",
        "all connections are in use",
        |served, client| {
            keep(served, client, "");
            *client = served.client();
        },
    )
    .limit("connections")
    .closes(),
    Cause::new(
        503,
        "a connection of a client too many",
        "all connections are in use",
        |served, client| {
            keep(served, client, "");
            *client = served.client();
        },
    )
    .limit("connections_a_peer")
    .at(|builder, _| builder.count_loopback())
    .closes(),
    Cause::new(
        400,
        "a malformed request line",
        "malformed request line",
        |_, client| {
            client.send("GET /Xy\r\n\r\n");
        },
    )
    .closes(),
    Cause::new(
        400,
        "a sign of the URI that needs an escape",
        "written as %XX",
        |_, client| {
            get(client, "/<Xy>");
        },
    )
    .closes(),
    Cause::new(
        400,
        "a line end that is not CRLF",
        "malformed line end",
        |_, client| {
            client.send("GET /Xy HTTP/1.1\nHost: localhost\n\n");
        },
    )
    .closes(),
    Cause::new(
        505,
        "a version but HTTP/1.0 and 1.1",
        "version is not supported",
        |_, client| {
            client.send("GET /Xy HTTP/2.0\r\n\r\n");
        },
    )
    .closes(),
    Cause::new(
        400,
        "a malformed header field",
        "malformed header field",
        |_, client| {
            head(client, "GET /Xy", "A b: c\r\n");
        },
    )
    .closes(),
    Cause::new(
        400,
        "no `Host`, or two",
        "there must be one Host",
        |_, client| {
            client.send("GET /Xy HTTP/1.1\r\n\r\n");
        },
    )
    .closes(),
    Cause::new(400, "a malformed `Host`", "malformed Host", |_, client| {
        client.send("GET /Xy HTTP/1.1\r\nHost: a@localhost\r\n\r\n");
    })
    .closes(),
    Cause::new(
        400,
        "a malformed length of the body",
        "malformed Content-Length",
        |_, client| {
            head(client, "POST /Xy", "Content-Length: -1\r\n");
        },
    )
    .closes(),
    Cause::new(
        400,
        "two lengths",
        "more than one Content-Length",
        |_, client| {
            head(
                client,
                "POST /Xy",
                "Content-Length: 1\r\nContent-Length: 1\r\n",
            );
        },
    )
    .closes(),
    Cause::new(
        400,
        "a length beside chunks",
        "beside Transfer-Encoding",
        |_, client| {
            let fields = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n";
            head(client, "POST /Xy", fields);
        },
    )
    .closes(),
    Cause::new(
        400,
        "a coding but `chunked`",
        "unsupported Transfer-Encoding",
        |_, client| {
            head(client, "POST /Xy", "Transfer-Encoding: gzip, chunked\r\n");
        },
    )
    .closes(),
    Cause::new(414, "a long URI", "the URI is too long", |_, client| {
        get(client, &format!("/{}", "x".repeat(100)));
    })
    .limit("uri")
    .closes(),
    Cause::new(
        431,
        "a long value of a header field",
        "a header value is too long",
        |_, client| {
            head(client, "GET /Xy", &format!("A: {}\r\n", "x".repeat(70)));
        },
    )
    .limit("header_value")
    .closes(),
    Cause::new(
        431,
        "many header fields",
        "too many header fields",
        |_, client| {
            head(client, "GET /Xy", &"A: b\r\n".repeat(10));
        },
    )
    .limit("headers")
    .closes(),
    Cause::new(431, "a long head", "the head is too long", |_, client| {
        let field = format!("A: {}\r\n", "x".repeat(60));
        head(client, "GET /Xy", &field.repeat(9));
    })
    .limit("head")
    .closes(),
    Cause::new(408, "a slow head", "the head took too long", |_, client| {
        client.send("GET /Xy");
    })
    .limit("head_time")
    .closes(),
    Cause::new(
        400,
        "a malformed chunk",
        "incomplete or malformed",
        |_, client| {
            head(client, "POST /Xy", "Transfer-Encoding: chunked\r\n");
            client.send("x\r\n");
        },
    )
    .closes(),
    Cause::new(413, "a large body", "the body is too large", |_, client| {
        post(client, JSON, &" ".repeat(101));
    })
    .limit("body")
    .closes(),
    Cause::new(408, "a slow body", "the body took too long", |_, client| {
        head(client, "POST /Xy", "Content-Length: 5\r\n");
    })
    .limit("body_time")
    .closes(),
    Cause::new(
        408,
        "a body slower than its rate",
        "the body took too long",
        |_, client| {
            head(client, "POST /Xy", "Content-Length: 50\r\n");
        },
    )
    .limit("body_rate")
    .closes(),
    Cause::new(
        403,
        "a host that is not allowed",
        "the host is not allowed",
        |_, client| {
            client.send("GET /Xy HTTP/1.1\r\nHost: evil.org\r\n\r\n");
        },
    )
    .caller("host"),
    Cause::new(400, "two origins", "more than one Origin", |_, client| {
        head(client, "GET /Xy", "Origin: null\r\nOrigin: null\r\n");
    })
    .caller("origin"),
    Cause::new(
        403,
        "an origin that is not allowed",
        "the origin is not allowed",
        |_, client| {
            head(client, "GET /Xy", "Origin: http://localhost:1\r\n");
        },
    )
    .caller("origin"),
    Cause::new(
        405,
        "another method at a page",
        "the method is not allowed",
        |_, client| {
            head(client, "POST /metrics", "Content-Length: 0\r\n");
        },
    ),
    Cause::new(400, "a path without a name", "no type name", |_, client| {
        get(client, "/")
    }),
    Cause::new(
        400,
        "a malformed escape",
        "incomplete escape",
        |_, client| get(client, "/%4"),
    ),
    Cause::new(
        404,
        "a name of no type",
        "unknown type \"Zz\"",
        |_, client| get(client, "/Zz"),
    ),
    Cause::new(
        405,
        "another method of a type",
        "the method is not allowed",
        |_, client| {
            head(client, "DELETE /Xy", "");
        },
    ),
    Cause::new(
        403,
        "a read from another site",
        "another site may not read this",
        |_, client| {
            head(client, "GET /Xy", "Sec-Fetch-Site: cross-site\r\n");
        },
    )
    .caller("site"),
    Cause::new(
        415,
        "a body that is encoded",
        "unsupported Content-Encoding",
        |_, client| {
            post(client, "Content-Encoding: gzip\r\n", "x");
        },
    ),
    Cause::new(
        503,
        "many requests at once",
        "requests are being answered",
        |served, client| {
            // It closes its end, and is answered nevertheless.
            keep(served, &mut served.client(), "");
            get(client, "/Xy");
        },
    )
    .limit("in_flight"),
    Cause::new(
        503,
        "answers that clients have not taken",
        "bytes of answers",
        |served, client| {
            let mut greedy = served.client();
            get(&mut greedy, "/Xy?x=1000&y=2000");
            until("too much is not taken", || served.get("/Xy").status == 503);
            // The first connection may be too old by now.
            *client = served.client();
            get(client, "/Xy");
            // It holds its answer until the test ends.
            std::mem::forget(greedy);
        },
    )
    .limit("unsent"),
    Cause::new(
        503,
        "many requests of a client of a proxy",
        "requests of the client are being answered",
        |served, client| {
            keep(served, &mut served.client(), FOR);
            head(client, "GET /Xy", FOR);
        },
    )
    .limit("connections_a_peer")
    .at(|builder, _| {
        let proxy = Ipv4Addr::LOCALHOST.into();
        builder.trust_proxy([proxy]).allow_unmarked()
    }),
    Cause::new(
        400,
        "another media type",
        "unexpected content type \"text/csv\"",
        |_, client| {
            post(client, "Content-Type: text/csv\r\n", "x");
        },
    ),
    Cause::new(
        400,
        "JSON that is too deep",
        "JSON is deeper than",
        |_, client| {
            post(client, JSON, "[[[[1]]]]");
        },
    )
    .limit("depth"),
    Cause::new(
        400,
        "a list that is too long",
        "a list is longer than",
        |_, client| {
            post(client, JSON, "[1,2,3,4]");
        },
    )
    .limit("list"),
    Cause::new(
        400,
        "JSON that is none",
        "EOF while parsing",
        |_, client| {
            post(client, JSON, "{");
        },
    ),
    Cause::new(
        400,
        "a form that is not UTF-8",
        "the form is not UTF-8",
        |_, client| {
            let form = "Content-Type: application/x-www-form-urlencoded\r\n";
            head(client, "POST /Xy", &format!("{form}Content-Length: 1\r\n"));
            client.send([0xff]);
        },
    ),
    Cause::new(
        400,
        "a field without a value",
        "unexpected field \"flag\" query",
        |_, client| {
            get(client, "/Xy?flag");
        },
    ),
    Cause::new(
        400,
        "a key that the type does not have",
        "unknown key \"z\"",
        |_, client| {
            get(client, "/Xy?z=1");
        },
    ),
    Cause::new(
        400,
        "a key that comes twice",
        "duplicate field",
        |_, client| {
            get(client, "/Act?how=a&how=b");
        },
    ),
    Cause::new(
        400,
        "two variants of a value",
        "more than one variant",
        |_, client| get(client, "/Shape?circle=1&line=2"),
    )
    .at(|builder, address| {
        builder.on("Shape", address, |shape: Shape, reply| {
            let (Shape::Circle(x) | Shape::Line(x)) = shape;
            Message::Xy(Xy { x: x.into(), y: 1 }, reply)
        })
    }),
    Cause::new(
        400,
        "a value of another type",
        "no conversion for \"x\"",
        |_, client| {
            get(client, "/Xy?x=a");
        },
    ),
    Cause::new(
        400,
        "a value that is missing",
        "missing field `how`",
        |_, client| {
            get(client, "/Act");
        },
    ),
    Cause::new(
        500,
        "a type whose code panics",
        "the request cannot be decoded",
        |_, client| get(client, "/Panics"),
    )
    .at(|builder, address| builder.on("Panics", address, |_: Panics, reply| Message::Nan(reply))),
    Cause::new(
        500,
        "a message whose code panics",
        "no answer can be made",
        |_, client| get(client, "/Unmade?how=x"),
    )
    .at(|builder, address| {
        let unmade = |_: Act, _: Reply<u32>| -> Message { panic!("a secret") };
        builder.on("Unmade", address, unmade)
    }),
    Cause::new(
        504,
        "an actor that does not answer in time",
        "no answer came",
        |_, client| {
            get(client, "/Act?how=keep");
        },
    )
    .limit("answer_time"),
    Cause::new(
        500,
        "an actor that drops the reply",
        "the actor gave no answer",
        |_, client| {
            get(client, "/Act?how=drop");
        },
    ),
    Cause::new(
        500,
        "an answer that JSON does not have",
        "cannot be encoded",
        |_, client| {
            get(client, "/Nan?how=x");
        },
    ),
    Cause::new(
        500,
        "a response of an actor with no final status",
        "no final status",
        |_, client| get(client, "/Other"),
    )
    .at(|builder, address| answers_all(builder, address, || HttpResponse::new(101, ""))),
    Cause::new(
        500,
        "a response of an actor with bytes of no type",
        "no content type",
        |_, client| get(client, "/Other"),
    )
    .at(|builder, address| answers_all(builder, address, || HttpResponse::new(200, vec![1]))),
    Cause::new(
        503,
        "an actor that has ended",
        "the actor has ended",
        |served, client| {
            served.actor.stop();
            until("it has ended", || served.actor.address().is_closed());
            get(client, "/Xy");
        },
    ),
];
