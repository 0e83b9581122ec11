//! What the costs of an item say: where their curve bends, and whether it grows too fast.

use super::COUNTS;

/// A curve bends where an item takes more than this many times as long as before.
const BEND: f64 = 2.0;
/// The number of items with which the largest number is compared. With fewer, the begin and the end
/// of a lap count too much.
const BASE: usize = 1;

/// The costs of an item, by [`COUNTS`].
pub type Costs = [Option<f64>; COUNTS.len()];

/// Returns the numbers of items at which a curve of nanoseconds bends, each with its reason.
pub fn bends(nanoseconds: &Costs, instructions: &Costs) -> String {
    let mut bends = Vec::new();
    for at in 1..COUNTS.len() {
        let growth = |costs: &Costs| Some(costs[at]? / costs[at - 1]?);
        if growth(nanoseconds).is_some_and(|growth| growth > BEND) {
            let why = match growth(instructions) {
                None => "",
                Some(growth) if growth > BEND / 2.0_f64.sqrt() => ", instructions",
                Some(_) => ", memory",
            };
            bends.push(format!("{}{why}", COUNTS[at]));
        }
    }
    bends.join("; ")
}

/// Returns how many times as much the largest number of items takes each, if that is more than
/// n log n allows for all of them.
pub fn grows(instructions: &Costs) -> Option<f64> {
    let largest = (BASE + 1..COUNTS.len()).rfind(|&at| instructions[at].is_some())?;
    let growth = instructions[largest]? / instructions[BASE]?;
    let logarithm = |at: usize| (COUNTS[at] as f64).ln();
    (growth > logarithm(largest) / logarithm(BASE)).then_some(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_bends_where_an_item_takes_twice_as_long() {
        let nanoseconds = [Some(10.0), Some(19.0), Some(60.0), Some(130.0)];
        let instructions = [Some(100.0), Some(110.0), Some(115.0), Some(400.0)];
        let bends = bends(&nanoseconds, &instructions);
        assert_eq!(bends, "100000, memory; 1000000, instructions");
        assert_eq!(super::bends(&[None; 4], &instructions), "");
    }

    #[test]
    fn a_logarithm_is_allowed_and_a_power_is_not() {
        let grows = |costs| grows(&costs).is_some();
        assert!(!grows([Some(40.0), Some(10.0), Some(15.0), Some(19.9)]));
        assert!(grows([None, Some(10.0), Some(15.0), Some(20.1)]));
        assert!(grows([None, Some(10.0), Some(20.0), None]));
        assert!(!grows([None, Some(10.0), None, None]));
    }
}
