//! Errors of [`handlers!`](crate::handlers!), as traits that no type implements.
//!
//! The macro names one of these functions, and the name of a handler as its type. The compiler then
//! reports the trait where that name stands: on a line of the user, unlike `compile_error!`.

#[diagnostic::on_unimplemented(
    message = "a handler borrows its actor",
    label = "the first parameter of this handler is not `&mut self` or `&self`"
)]
pub trait Receiver {}
pub fn receiver<Handler: Receiver>() {}

#[diagnostic::on_unimplemented(
    message = "a parameter of a handler has a name and a type",
    label = "not all parameters of this handler are of the form `name: Type`",
    note = "parameters are fields of a message: take them apart, or make them `mut`, in the body",
    note = "the context comes last, with its type: `cx: &mut Context<CounterMessage>`"
)]
pub trait Parameter {}
pub fn parameter<Handler: Parameter>() {}

#[diagnostic::on_unimplemented(
    message = "a handler has no type parameters and no lifetimes",
    label = "this handler has some, but the messages have one type"
)]
pub trait Generics {}
pub fn generics<Handler: Generics>() {}

#[diagnostic::on_unimplemented(
    message = "an attribute is unknown to `handlers!`",
    label = "this handler has another attribute than those below",
    note = "it may have comments, `doc`, `cfg`, `allow`, `expect`, `must_use`, `deprecated` and \
            `inline`",
    note = "for any other attribute, call a method that is in an `impl` of its own"
)]
pub trait Attribute {}
pub fn attribute<Handler: Attribute>() {}

#[diagnostic::on_unimplemented(
    message = "a hook is written as in the trait `Actor`",
    label = "`Actor` has a hook of this name with another signature",
    note = "`async fn started(&mut self, cx: &mut Context<CounterMessage>)`, `stopped` likewise",
    note = "`fn panicked(&mut self, fault: &Fault, cx: &mut Context<CounterMessage>) -> bool`"
)]
pub trait Signature {}
pub fn signature<Hook: Signature>() {}

#[diagnostic::on_unimplemented(
    message = "the trait `Actor` has no hook of this name",
    label = "this is no hook, and not allowed for a handler, since it looks like one",
    note = "the hooks are `started`, `panicked` and `stopped`"
)]
pub trait Hook {}
pub fn hook<Handler: Hook>() {}

/// Accepts the types that can be in a message.
pub fn sendable<Parameter: Send>() {}
