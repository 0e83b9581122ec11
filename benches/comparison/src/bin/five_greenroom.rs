//! An account with five kinds of messages, in greenroom.

use greenroom::spawn;

#[derive(Debug, PartialEq)]
pub struct Short(u64);

#[derive(Default)]
pub struct Account {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

greenroom::handlers! {
    pub impl Account as Bank, Message {
        pub fn deposit(&mut self, n: u64) -> u64 {
            self.cents += n;
            self.history.push(n as i64);
            self.cents
        }
        pub fn withdraw(&mut self, n: u64) -> Result<u64, Short> {
            let cents = self.cents;
            self.cents = cents.checked_sub(n).ok_or_else(|| Short(n - cents))?;
            self.history.push(-(n as i64));
            Ok(self.cents)
        }
        pub fn balance(&self) -> u64 {
            self.cents
        }
        pub fn history(&self, last: usize) -> Vec<i64> {
            self.history.iter().rev().take(last).copied().collect()
        }
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
