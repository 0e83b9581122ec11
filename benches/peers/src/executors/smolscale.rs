//! smolscale: one executor for the process, with as many threads as the machine has cores.

use async_executor::Task;

use super::Executor;

/// The single executor of the process, which starts by itself.
pub struct Smolscale;

impl Executor for Smolscale {
    type Task<T: Send + 'static> = Task<T>;

    fn start() -> Self {
        Self
    }

    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T {
        smolscale::block_on(Self::spawn(driver))
    }

    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        smolscale::spawn(future)
    }
}
