//! The runtime as an executor of the `futures` crates: whoever takes any executor takes this one.
//!
//! What is spawned so is a plain task that nobody joins: its panic goes to `on_fault`.

use futures_task::{FutureObj, Spawn, SpawnError};

use super::handle::Runtime;
use crate::contain::drop_refused;

/// The runtime as `futures::task::Spawn`, for code that is given any executor.
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
    /// # Errors
    /// `SpawnError::shutdown` if the runtime is shutting down, or is the parent process's, after a `fork`.
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        if let Err(error) = self.status() {
            drop_refused(future);
            return Err(error);
        }
        // What was accepted is a task, which a shutdown that begins now cancels as any other.
        crate::task::spawn(self.inner.clone(), future).detach();
        Ok(())
    }

    /// # Errors
    /// As [`spawn_obj`](Spawn::spawn_obj).
    fn status(&self) -> Result<(), SpawnError> {
        if self.inner.shutdown.has_begun() || !self.inner.is_here() {
            return Err(SpawnError::shutdown());
        }
        Ok(())
    }
}
