//! Tests of what a watched simulation is reported for.

use super::Seen;

#[test]
fn a_step_is_reported_once_if_two_looks_find_it() {
    let mut seen = Seen::default();
    let told: Vec<bool> = [7, 7, 7, 8, 9, 9]
        .map(|step| seen.stands_still(step))
        .to_vec();
    assert_eq!(told, [false, true, false, false, false, true]);
}
