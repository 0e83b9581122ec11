//! This example shows an actor with five messages, declared by `handlers!`.
//!
//! Each message is one method. It prints:
//!
//! ```text
//! Ada has 70
//! ```

use greenroom::spawn;

/// How many cents are missing.
#[derive(Debug, PartialEq)]
pub struct Short(u64);

/// An account, as an actor.
#[derive(Default)]
pub struct Account {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

greenroom::handlers! {
    /// What a teller uses.
    pub impl Account as Bank, Message {
        /// Adds to the balance, and returns it.
        pub fn deposit(&mut self, n: u64) -> u64 {
            self.cents += n;
            self.history.push(n as i64);
            self.cents
        }
        /// Takes from the balance and returns it, or leaves it if it is too low.
        pub fn withdraw(&mut self, n: u64) -> Result<u64, Short> {
            let cents = self.cents;
            self.cents = cents.checked_sub(n).ok_or_else(|| Short(n - cents))?;
            self.history.push(-(n as i64));
            Ok(self.cents)
        }
        /// Returns the balance.
        pub fn balance(&self) -> u64 {
            self.cents
        }
        /// Returns the last changes, newest first.
        pub fn history(&self, last: usize) -> Vec<i64> {
            self.history.iter().rev().take(last).copied().collect()
        }
        /// Gives the account to another owner.
        pub fn rename(&mut self, owner: String) {
            self.owner = owner;
        }
    }
}

fn main() {
    greenroom::run(async {
        let account = spawn!(Account::default());
        let bank = Bank::from(account.address());
        assert_eq!(bank.deposit(100).await, Ok(100));
        assert_eq!(bank.withdraw(300).await, Ok(Err(Short(200))));
        assert_eq!(bank.withdraw(30).await, Ok(Ok(70)));
        bank.rename("Ada".into()).tell().unwrap();
        assert_eq!(bank.history(5).await, Ok(vec![-30, 100]));
        assert_eq!(bank.balance().await, Ok(70));
        drop(bank);
        let account = account.join().await.unwrap();
        println!("{} has {}", account.owner, account.cents);
    });
}
