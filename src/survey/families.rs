//! Families of games with the same sequence, which a survey computes once.

use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use crate::theory::standard_form::StandardForm;
use std::collections::HashMap;

/// A game and the shift of its sequence against that of its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) rule: Rule,
    /// The number s with G(n) = H(n - s), where H is the sequence of the standard form; 0 without one.
    pub(super) shift: u64,
}

impl Member {
    pub(super) fn new(rule: Rule) -> Member {
        let StandardForm { shift, .. } = representative(&rule);
        Member { rule, shift }
    }

    /// The first values of this game, given those of another game of its family: as many, or fewer by the difference of
    /// the shifts if the shift of the other game is greater.
    pub(super) fn values_from(&self, other: &Member, values: &[u16]) -> Vec<u16> {
        let zeros = (other.shift..self.shift).map(|_| 0);
        let surplus = index(other.shift.saturating_sub(self.shift));
        zeros.chain(values.iter().skip(surplus).copied()).take(values.len()).collect()
    }
}

/// The game that stands for the family of a rule, and the shift of the rule: its standard form, or the rule itself.
pub(super) fn representative(rule: &Rule) -> StandardForm {
    StandardForm::of(rule).unwrap_or_else(|| StandardForm { rule: rule.clone(), shift: 0 })
}

/// Divides games into families with the same standard form, in the order of their first games. Each family is sorted by
/// shift.
pub(super) fn families(games: Vec<Rule>) -> Vec<Vec<Member>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut families: Vec<Vec<Member>> = Vec::new();
    for rule in games {
        let StandardForm { rule: form, shift } = representative(&rule);
        let place = *places.entry(form.name().to_owned()).or_insert_with(|| {
            families.push(Vec::new());
            families.len() - 1
        });
        families[place].push(Member { rule, shift });
    }
    families.iter_mut().for_each(|family| family.sort_by_key(|member| member.shift));
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{self, Method};

    #[test]
    fn values_of_a_family_are_those_of_each_game() {
        let games = ["0.137", "0.77", "0.07", "grundy", "0.04", "0.007"].map(|name| name.parse().unwrap());
        let families = families(games.to_vec());
        let names = |family: &Vec<Member>| family.iter().map(|member| member.rule.name().to_owned()).collect();
        let names: Vec<Vec<String>> = families.iter().map(names).collect();
        assert_eq!(names, [vec!["0.137", "0.07"], vec!["0.77"], vec!["grundy"], vec!["0.007", "0.04"]]);
        for family in &families {
            let values = |member: &Member| solver::values(&member.rule, Method::Definition, 300).unwrap();
            let first = values(&family[0]);
            for member in family {
                assert_eq!(member.values_from(&family[0], &first), values(member), "{}", member.rule);
                let back = family[0].values_from(member, &values(member));
                assert!(back.len() > 290 && back == first[..back.len()], "{}", member.rule);
            }
        }
    }
}
