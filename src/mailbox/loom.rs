//! Models of the mailbox.
