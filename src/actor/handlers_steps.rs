//! The steps of `handlers!`: each reads a method or its context, and the last one emits all.
//!
//! Tokens that an error may point at pass through the steps as they are: names as `tt`, since an
//! `ident` would point at the macro.

/// The steps of `handlers!`.
///
/// `@read` takes a method off the list, `@split` its context off its parameters. Both pass on what
/// was read before: declaration, name of the context in `handle`, handlers, hooks.
#[doc(hidden)]
#[macro_export]
macro_rules! __handlers {
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {}) => {
        $crate::__handlers! { @emit $declared $cx $handlers $hooks }
    };

    // Hooks of the trait `Actor`.
    (@read $declared:tt $cx:ident $handlers:tt [$($hooks:tt)*] {
        $(#[$attribute:meta])* $vis:vis async fn started $parameters:tt { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @read $declared $cx $handlers [
            $($hooks)* $(#[$attribute])* $vis async fn started $parameters { $($body)* }
        ] { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt [$($hooks:tt)*] {
        $(#[$attribute:meta])* $vis:vis async fn stopped $parameters:tt { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @read $declared $cx $handlers [
            $($hooks)* $(#[$attribute])* $vis async fn stopped $parameters { $($body)* }
        ] { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt [$($hooks:tt)*] {
        $(#[$attribute:meta])* $vis:vis fn panicked $parameters:tt -> $goes_on:ty { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @read $declared $cx $handlers [
            $($hooks)* $(#[$attribute])* $vis fn panicked $parameters -> $goes_on { $($body)* }
        ] { $($rest)* } }
    };

    // Handlers: async or not, with a mutable or a shared receiver.
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis async fn $name:tt
        (&mut $self:ident $(, $($parameters:tt)*)?) $(-> $result:ty)? { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @split $declared $cx $handlers $hooks { $($rest)* }
            { [$(#[$($attribute)*])*] [$vis] [async] [&mut $self] $name }
            [$(reply: $result)?] { $($body)* } [] [$($($parameters)*)?]
        }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis async fn $name:tt
        (& $self:ident $(, $($parameters:tt)*)?) $(-> $result:ty)? { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @split $declared $cx $handlers $hooks { $($rest)* }
            { [$(#[$($attribute)*])*] [$vis] [async] [& $self] $name }
            [$(reply: $result)?] { $($body)* } [] [$($($parameters)*)?]
        }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis fn $name:tt
        (&mut $self:ident $(, $($parameters:tt)*)?) $(-> $result:ty)? { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @split $declared $cx $handlers $hooks { $($rest)* }
            { [$(#[$($attribute)*])*] [$vis] [] [&mut $self] $name }
            [$(reply: $result)?] { $($body)* } [] [$($($parameters)*)?]
        }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis fn $name:tt
        (& $self:ident $(, $($parameters:tt)*)?) $(-> $result:ty)? { $($body:tt)* }
        $($rest:tt)*
    }) => {
        $crate::__handlers! { @split $declared $cx $handlers $hooks { $($rest)* }
            { [$(#[$($attribute)*])*] [$vis] [] [& $self] $name }
            [$(reply: $result)?] { $($body)* } [] [$($($parameters)*)?]
        }
    };

    // A context is a last parameter whose type begins with `&mut`. Four parameters a step.
    (@split $declared:tt $cx:ident [$($handlers:tt)*] $hooks:tt $rest:tt
        { $($method:tt)* } $reply:tt $body:tt [$($split:tt)*]
        [$context:ident: &mut $type:ty $(,)?]) => {
        $crate::__handlers! { @read $declared $cx [
            $($handlers)* { $($method)* [$($split)*] [$cx: $context: $type] $reply $body }
        ] $hooks $rest }
    };
    (@split $declared:tt $cx:ident [$($handlers:tt)*] $hooks:tt $rest:tt
        { $($method:tt)* } $reply:tt $body:tt [$($split:tt)*]
        [$a:ident: $ta:ty, $context:ident: &mut $type:ty $(,)?]) => {
        $crate::__handlers! { @read $declared $cx [
            $($handlers)* { $($method)* [$($split)* $a: $ta,] [$cx: $context: $type] $reply $body }
        ] $hooks $rest }
    };
    (@split $declared:tt $cx:ident [$($handlers:tt)*] $hooks:tt $rest:tt
        { $($method:tt)* } $reply:tt $body:tt [$($split:tt)*]
        [$a:ident: $ta:ty, $b:ident: $tb:ty, $context:ident: &mut $type:ty $(,)?]) => {
        $crate::__handlers! { @read $declared $cx [
            $($handlers)* {
                $($method)* [$($split)* $a: $ta, $b: $tb,] [$cx: $context: $type] $reply $body
            }
        ] $hooks $rest }
    };
    (@split $declared:tt $cx:ident $handlers:tt $hooks:tt $rest:tt
        $method:tt $reply:tt $body:tt [$($split:tt)*]
        [$a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty, $($parameters:tt)+]) => {
        $crate::__handlers! { @split $declared $cx $handlers $hooks $rest
            $method $reply $body [$($split)* $a: $ta, $b: $tb, $c: $tc,] [$($parameters)+]
        }
    };
    (@split $declared:tt $cx:ident [$($handlers:tt)*] $hooks:tt $rest:tt
        { $($method:tt)* } $reply:tt $body:tt [$($split:tt)*]
        [$($name:ident: $type:ty),* $(,)?]) => {
        $crate::__handlers! { @read $declared $cx [
            $($handlers)* { $($method)* [$($split)* $($name: $type,)*] [] $reply $body }
        ] $hooks $rest }
    };

    // Mistakes. Each is reported, and the rest is read.
    (@split $declared:tt $cx:ident $handlers:tt $hooks:tt $rest:tt
        { $attributes:tt $vis:tt $async:tt $self:tt $name:tt }
        $reply:tt $body:tt $split:tt $parameters:tt) => {
        $crate::__handlers! { @mistake parameter $name }
        $crate::__handlers! { @read $declared $cx $handlers $hooks $rest }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis async fn $name:tt $parameters:tt $(-> $result:ty)?
        { $($body:tt)* } $($rest:tt)*
    }) => {
        $crate::__handlers! { @mistake receiver $name }
        $crate::__handlers! { @read $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis fn $name:tt $parameters:tt $(-> $result:ty)?
        { $($body:tt)* } $($rest:tt)*
    }) => {
        $crate::__handlers! { @mistake receiver $name }
        $crate::__handlers! { @read $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis async fn $name:tt < $($rest:tt)*
    }) => {
        $crate::__handlers! { @mistake generics $name }
        $crate::__handlers! { @skip $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt {
        $(#[$($attribute:tt)*])* $vis:vis fn $name:tt < $($rest:tt)*
    }) => {
        $crate::__handlers! { @mistake generics $name }
        $crate::__handlers! { @skip $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@read $declared:tt $cx:ident $handlers:tt $hooks:tt { $($unexpected:tt)* }) => {
        ::core::compile_error!(
            "`handlers!` takes methods with a body; what it found instead is in the other error"
        );
        $crate::__handlers_are_methods_with_a_body! { $($unexpected)* }
    };
    (@skip $declared:tt $cx:ident $handlers:tt $hooks:tt { { $($body:tt)* } $($rest:tt)* }) => {
        $crate::__handlers! { @read $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@skip $declared:tt $cx:ident $handlers:tt $hooks:tt { $skipped:tt $($rest:tt)* }) => {
        $crate::__handlers! { @skip $declared $cx $handlers $hooks { $($rest)* } }
    };
    (@mistake $mistake:ident $name:tt) => {
        const _: fn() = {
            #[allow(non_camel_case_types, reason = "a handler is called so")]
            type $name = ();
            $crate::handler_mistakes::$mistake::<$name>
        };
    };

    (@emit {
        [$(#[
            $(doc = $doc:literal)?
            $(doc($($docs:tt)*))?
            $(cfg($($cfg:tt)*))?
            $(allow($($allow:tt)*))?
            $(derive($($derive:tt)*))?
        ])*]
        [$vis:vis] [$($hidden:tt)*] [$actor:ty] $address:ident $message:ident
    } $cx:ident [$({
        [$(#[
            $(doc = $fn_doc:literal)?
            $(doc($($fn_docs:tt)*))?
            $(cfg($($fn_cfg:tt)*))?
            $(allow($($fn_allow:tt)*))?
            $(expect($($fn_expect:tt)*))?
            $(must_use $(= $fn_must_use:literal)?)?
            $(deprecated $(= $fn_deprecated:literal)? $(($($fn_deprecated_since:tt)*))?)?
            $(inline $(($($fn_inline:tt)*))?)?
        ])*]
        [$fn_vis:vis] [$($async:ident)?] [$($self:tt)*] $name:tt
        [$($parameter:ident: $type:ty,)*] [$($cx_passed:ident: $context:ident: $context_type:ty)?]
        [$($reply:ident: $result:ty)?] $body:tt
    })*] [$($hooks:tt)*]) => {
        $($(#[cfg($($cfg)*)])? $(#[allow($($allow)*)])? $(#[derive($($derive)*)])?)*
        #[doc = ::core::concat!(
            "The messages of [`", ::core::stringify!($actor), "`], one for each handler.\n\nThe \
             fields are the parameters of the handler, then the reply if it has a result."
        )]
        #[allow(non_camel_case_types, reason = "a message is called as its handler")]
        $($hidden)*
        pub enum $message {$(
            $(
                $(#[doc = $fn_doc])? $(#[doc($($fn_docs)*)])? $(#[cfg($($fn_cfg)*)])?
                $(#[allow($($fn_allow)*)])?
            )*
            #[doc = ::core::concat!(
                "\n\nHandled by `", ::core::stringify!($name($($parameter: $type),*) $(-> $result)?),
                "`."
            )]
            $name($($type,)* $($crate::Reply<$result>,)?),
        )*}

        $(
            $(#[doc = $doc])? $(#[doc($($docs)*)])? $(#[cfg($($cfg)*)])?
            $(#[allow($($allow)*)])?
        )*
        #[doc = ::core::concat!(
            "\n\nAn address of [`", ::core::stringify!($actor), "`], with a method for each message."
        )]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[allow(dead_code, reason = "a program may use only the messages")]
        $vis struct $address($crate::Address<$message>);

        $($(#[cfg($($cfg)*)])? $(#[allow($($allow)*)])?)*
        impl $address {$(
            $crate::__handlers! { @method
                [$(
                    $(#[doc = $fn_doc])? $(#[doc($($fn_docs)*)])? $(#[cfg($($fn_cfg)*)])?
                    $(#[allow($($fn_allow)*)])? $(#[must_use $(= $fn_must_use)?])?
                    $(#[deprecated $(= $fn_deprecated)? $(($($fn_deprecated_since)*))?])?
                )*]
                [$fn_vis] $message $name [$($parameter: $type,)*] [$($result)?]
            }
        )*}

        $($(#[cfg($($cfg)*)])?)*
        $crate::__handlers! { @address $address $message }

        $($(#[cfg($($cfg)*)])? $(#[allow($($allow)*)])?)*
        impl $actor {$(
            $(
                $(#[doc = $fn_doc])? $(#[doc($($fn_docs)*)])? $(#[cfg($($fn_cfg)*)])?
                $(#[allow($($fn_allow)*)])? $(#[expect($($fn_expect)*)])?
                $(#[inline $(($($fn_inline)*))?])?
            )*
            $fn_vis $($async)? fn $name(
                $($self)*, $($parameter: $type,)* $($context: &mut $context_type,)?
            ) $(-> $result)? $body
        )*}

        $($(#[cfg($($cfg)*)])? $(#[allow($($allow)*)])?)*
        impl $crate::Actor for $actor {
            type Message = $message;

            async fn handle(&mut self, message: $message, $cx: &mut $crate::Context<$message>) {
                let _ = &$cx;
                match message {$(
                    $($(#[cfg($($fn_cfg)*)])?)*
                    $message::$name($($parameter,)* $($reply,)?) => {
                        $($reply.send)? ($crate::__handlers! {
                            @call [$($async)?] [$($cx_passed)?] $cx
                            self.$name($($parameter,)* $($cx_passed,)?)
                        })
                    }
                )*}
            }

            #[allow(unreachable_patterns, reason = "two handlers of one name are reported above")]
            fn label(message: &$message) -> &'static str {
                match *message {
                    $(
                        $($(#[cfg($($fn_cfg)*)])?)*
                        $message::$name(..) => ::core::stringify!($name).trim_start_matches("r#"),
                    )*
                    _ => "",
                }
            }

            $($hooks)*
        }

        // Mistakes that are reported above are reported again, on the lines that have them.
        $($(#[cfg($($cfg)*)])?)*
        const _: () = {
            #[allow(
                dead_code, unused_variables, clippy::too_many_arguments,
                reason = "it is only compiled"
            )]
            fn check($($($(#[cfg($($fn_cfg)*)])?)* $name: ()),*) {
                $($($(#[cfg($($fn_cfg)*)])?)* {
                    $($crate::handler_mistakes::sendable::<$type>();)*
                    $($crate::handler_mistakes::sendable::<$result>();)?
                })*
            }
        };

        $($crate::__handlers! { @name $name $name })*
    };
    // An attribute is unknown: one before `impl`, or that of a handler, which is left out.
    (@emit $declared:tt $cx:ident [$({ [] $($method:tt)* })*] $hooks:tt) => {
        ::core::compile_error!(
            "before `impl`, `handlers!` knows comments, `doc`, `cfg`, `allow` and, for the messages, \
             `derive`"
        );
    };
    (@emit $declared:tt $cx:ident [$({
        $attributes:tt $vis:tt $async:tt $self:tt $name:tt $($method:tt)*
    })*] $hooks:tt) => {
        $($crate::__handlers! { @known $attributes $name })*
        $crate::__handlers! { @emit $declared $cx [$({
            [] $vis $async $self $name $($method)*
        })*] $hooks }
    };
    (@known [$(#[
        $(doc = $doc:literal)? $(doc($($docs:tt)*))? $(cfg($($cfg:tt)*))? $(allow($($allow:tt)*))?
        $(expect($($expect:tt)*))? $(must_use $(= $must_use:literal)?)?
        $(deprecated $(= $deprecated:literal)? $(($($since:tt)*))?)? $(inline $(($($inline:tt)*))?)?
    ])*] $name:tt) => {};
    (@known $attributes:tt $name:tt) => {
        $crate::__handlers! { @mistake attribute $name }
    };

    // A call of a handler. If it is async and gets no context, another future polls it. It is
    // pinned here, so that a large one is not moved once more.
    (@call [] $passed:tt $cx:ident $($call:tt)*) => { $($call)* };
    (@call [async] [] $cx:ident $($call:tt)*) => {
        $crate::without_context($cx, ::core::pin::pin!($($call)*)).await
    };
    (@call [async] $passed:tt $cx:ident $($call:tt)*) => { $($call)*.await };

    // A method of the address.
    (@method [$($attribute:tt)*] [$vis:vis] $message:ident $name:tt
        [$($parameter:ident: $type:ty,)*] []) => {
        $($attribute)*
        #[allow(dead_code, reason = "a program may use only the message")]
        $vis fn $name(&self, $($parameter: $type),*) -> $crate::Unsent<'_, $message> {
            $crate::Unsent::new(&self.0, $message::$name($($parameter),*))
        }
    };
    (@method [$($attribute:tt)*] [$vis:vis] $message:ident $name:tt
        [$($parameter:ident: $type:ty,)*] [$result:ty]) => {
        $($attribute)*
        #[allow(dead_code, reason = "a program may use only the message")]
        $vis fn $name(&self, $($parameter: $type),*) -> $crate::Ask<
            '_,
            $message,
            $result,
            impl ::core::ops::FnOnce($crate::Reply<$result>) -> $message
                + ::core::marker::Send + 'static,
        > {
            self.0.ask(move |reply| $message::$name($($parameter,)* reply))
        }
    };

    // What an address is besides its methods.
    (@address $address:ident $message:ident) => {
        impl ::core::ops::Deref for $address {
            type Target = $crate::Address<$message>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::core::convert::From<$crate::Address<$message>> for $address {
            fn from(address: $crate::Address<$message>) -> Self {
                $address(address)
            }
        }

        impl ::core::convert::From<$address> for $crate::Address<$message> {
            fn from(address: $address) -> Self {
                address.0
            }
        }

        /// Keeps the address of a new actor, and gives up its result, as `Handle::detach` does.
        impl<T> ::core::convert::From<$crate::Handle<$message, T>> for $address {
            fn from(handle: $crate::Handle<$message, T>) -> Self {
                $address(handle.address())
            }
        }
    };

    // Names that hooks have here, or in other crates.
    (@name started $name:tt) => { $crate::__handlers! { @mistake signature $name } };
    (@name stopped $name:tt) => { $crate::__handlers! { @mistake signature $name } };
    (@name panicked $name:tt) => { $crate::__handlers! { @mistake signature $name } };
    (@name handle $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name on_start $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name on_stop $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name on_panic $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name pre_start $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name post_stop $name:tt) => { $crate::__handlers! { @mistake hook $name } };
    (@name $other:ident $name:tt) => {};
}

/// Fails at its first token, which tells the line. The name is a part of the error.
#[doc(hidden)]
#[macro_export]
macro_rules! __handlers_are_methods_with_a_body {
    () => {};
}

/// Fails at its first token, as above.
#[doc(hidden)]
#[macro_export]
macro_rules! __handlers_have_no_type_parameters {
    () => {};
}
