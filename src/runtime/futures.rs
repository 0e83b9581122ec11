//! The runtime as an executor for the `futures` crates, for code that is generic over executors.
//!
//! A future that is spawned this way is a detached plain task: its panic goes to `on_fault`.

use futures_task::{FutureObj, Spawn, SpawnError};

use super::handle::Runtime;
use crate::contain::drop_refused;

/// Spawns futures for code that is generic over `futures::task::Spawn`.
///
/// ```
/// use futures::task::SpawnExt;
///
/// fn begin<S: futures::task::Spawn>(executor: &S) -> impl Future<Output = u32> + use<S> {
///     executor.spawn_with_handle(async { 40 + 2 }).unwrap()
/// }
///
/// let runtime = greenroom::Runtime::new()?;
/// assert_eq!(runtime.block_on(begin(&runtime)), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
impl Spawn for Runtime {
    /// Spawns a detached plain task.
    ///
    /// # Errors
    /// `SpawnError::shutdown` if the runtime is shutting down or, after a `fork`, belongs to the
    /// parent process.
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        if let Err(error) = self.status() {
            drop_refused(future);
            return Err(error);
        }
        // Once accepted it is an ordinary task, which a shutdown that begins now cancels.
        crate::task::spawn_own(self.inner.clone(), future).detach();
        Ok(())
    }

    /// Returns whether the runtime accepts tasks.
    ///
    /// # Errors
    /// As [`spawn_obj`](Spawn::spawn_obj).
    fn status(&self) -> Result<(), SpawnError> {
        if self.inner.shutdown.has_begun() || !self.inner.is_here() {
            return Err(SpawnError::shutdown());
        }
        Ok(())
    }
}
