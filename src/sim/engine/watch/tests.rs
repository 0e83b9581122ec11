//! Tests of what a watched simulation is reported for.

use super::Watched;
use crate::policy::Simulated;
use crate::runtime::Runtime;

#[test]
fn a_step_is_reported_once_if_two_looks_find_it() {
    let runtime = Runtime::builder().policy(Simulated::new(0)).build();
    let mut watched = Watched {
        number: 0,
        runtime: runtime.unwrap().inner().clone(),
        step: None,
        is_reported: false,
    };
    let reported: Vec<bool> = [7, 7, 7, 8, 9, 9]
        .map(|step| watched.stands_still(step))
        .to_vec();
    assert_eq!(reported, [false, true, false, false, false, true]);
}
