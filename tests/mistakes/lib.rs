//! Programs with mistakes, and what the compiler says of them: see tests/mistakes.rs.
