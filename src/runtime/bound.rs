//! Which greenroom runtime a tokio runtime is bound to.
//!
//! Where no runtime of greenroom is current, that of the tokio runtime is. A binding does not keep
//! a runtime alive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::runtime::{Handle, Id};

use super::inner::Inner;
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, PerProcess};

/// Whether a runtime was ever bound in this process, as a number.
static IS_USED: AtomicU64 = AtomicU64::new(0);

fn bindings() -> &'static Mutex<HashMap<Id, Weak<Inner>>> {
    static BINDINGS: PerProcess<Mutex<HashMap<Id, Weak<Inner>>>> = PerProcess::new();
    BINDINGS.get_or_init(|| Mutex::new(HashMap::new()))
}

/// Returns the runtime to which the tokio runtime of this thread is bound, and that tokio runtime.
pub(super) fn bound_here() -> Option<(Arc<Inner>, Handle)> {
    // Relaxed: a thread that relies on a binding was told of it by other means. It publishes
    // nothing.
    if IS_USED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let handle = Handle::try_current().ok()?;
    let bound = bindings().lock().get(&handle.id())?.upgrade();
    Some((bound?, handle))
}

/// Binds a tokio runtime to this one.
pub(super) fn bind(handle: &Handle, inner: &Arc<Inner>) {
    // Relaxed: as above.
    IS_USED.store(1, Ordering::Relaxed);
    let mut bindings = bindings().lock();
    bindings.retain(|_, runtime| runtime.strong_count() > 0);
    bindings.insert(handle.id(), Arc::downgrade(inner));
}
