//! A connection with its prepared statements.
//!
//! A statement is prepared once. It is out of the table while it runs, so that its rows may lead to
//! other statements.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rusqlite::{Connection, Params, PrepFlags, Result, Row, Statement};

pub(crate) struct Db<'c> {
    pub(crate) connection: &'c Connection,
    /// By where their texts are, which are constants. `None` while one runs.
    statements: RefCell<BTreeMap<(usize, usize), Option<Statement<'c>>>>,
}

impl<'c> Db<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Db {
            connection,
            statements: RefCell::new(BTreeMap::new()),
        }
    }

    fn with<T>(
        &self,
        sql: &'static str,
        call: impl FnOnce(&mut Statement<'c>) -> Result<T>,
    ) -> Result<T> {
        let key = (sql.as_ptr() as usize, sql.len());
        let known = self
            .statements
            .borrow_mut()
            .get_mut(&key)
            .and_then(Option::take);
        let mut statement = match known {
            Some(statement) => statement,
            // It stays, so it takes no room in the small buffers that are used again for each call.
            None => self
                .connection
                .prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?,
        };
        let result = call(&mut statement);
        self.statements.borrow_mut().insert(key, Some(statement));
        result
    }

    /// Runs a statement without rows. Returns how many rows it has changed.
    pub(crate) fn run(&self, sql: &'static str, params: impl Params) -> Result<usize> {
        self.with(sql, |statement| statement.execute(params))
    }

    /// Returns the first row, if there is one.
    pub(crate) fn row<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.with(sql, |statement| {
            let mut rows = statement.query(params)?;
            rows.next()?.map(read).transpose()
        })
    }

    /// Returns all rows.
    pub(crate) fn rows<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.with(sql, |statement| {
            statement.query_map(params, read)?.collect()
        })
    }

    /// Calls a function with each row, until it says that this is enough.
    pub(crate) fn each(
        &self,
        sql: &'static str,
        params: impl Params,
        mut call: impl FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        self.with(sql, |statement| {
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                if !call(row)? {
                    break;
                }
            }
            Ok(())
        })
    }
}
