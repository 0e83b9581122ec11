//! Large futures and closures, which are boxed where they come in.
//!
//! A value that passes through functions is copied from stack to stack: about ten times in a debug
//! build, and up to four times in a release build. So an entry that takes a future or a closure
//! boxes a large one at once, and what is below moves a pointer.

use std::mem::size_of;

/// The largest size, in bytes, of what is not boxed. A box costs less than the copies of more.
///
/// A debug build copies more often, and its futures are larger.
const INLINE_MAX: usize = if cfg!(debug_assertions) {
    2 << 10
} else {
    16 << 10
};

/// Returns whether values of this type are boxed. It is known when the caller is compiled.
pub(crate) const fn is_large<T>() -> bool {
    size_of::<T>() > INLINE_MAX
}
