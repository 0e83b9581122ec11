//! Actors as async tasks, on a work-stealing executor made for them.
