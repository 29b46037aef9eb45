//! Proves a period in memory, and writes, reads and verifies its certificate: the short way through this module.
//!
//! [`prove`] computes the first values of a game until a theorem of [`super`] proves their period.
//! [`super::MemorySearch`] does the same with any method and reports progress;
//! [`super::RunSearch::compute_until_proved`] computes in a run directory.

use super::certificate::{Certificate, MAX_BYTES};
use super::{Finding, MemorySearch, Repeat, Theorem};
use crate::error::{Error, Result, printable};
use crate::solver::{self, Method};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::io::Read;
use std::path::Path;

/// Computes the values of a game in memory until a theorem proves their period, at most `limit` values.
///
/// Returns `None` if no period is proved by then, and for Nim, which has none. A value takes two bytes.
///
/// # Errors
/// [`Error::ValueTooLarge`] at a value above 65535, [`Error::Memory`] if the values do not fit in memory.
///
/// ```
/// use grundy::period;
///
/// let kayles = "kayles".parse()?;
/// let proved = period::prove(&kayles, 1 << 20)?.expect("Kayles is periodic");
/// assert_eq!((proved.period(), proved.preperiod()), (12, 71)); // Guy and Smith, 1956
///
/// let grundy = "grundy".parse()?;
/// assert!(period::prove(&grundy, 1 << 16)?.is_none());
/// # Ok::<(), grundy::Error>(())
/// ```
pub fn prove(rule: &Rule, limit: u64) -> Result<Option<ProvedPeriod>> {
    if rule.is_nim() {
        return Ok(None);
    }
    let mut search = MemorySearch::new(rule, Method::default());
    search.until_proved(limit, |_| true)?;
    let Some(Finding { repeat: Some(repeat), max_value, .. }) = search.finding().filter(|_| search.is_proved()) else {
        return Ok(None);
    };
    let certificate = Certificate::new(search.subject(), repeat, None)?;
    Ok(Some(ProvedPeriod { rule: rule.clone(), repeat: repeat.clone(), max_value: *max_value, certificate }))
}

/// A period that a theorem proves: G(n + period) = G(n) for all n from the preperiod on, and for no smaller period or
/// preperiod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedPeriod {
    rule: Rule,
    repeat: Repeat,
    max_value: u16,
    certificate: Option<Certificate>,
}

impl ProvedPeriod {
    /// The rule of the game.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The least period.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.repeat.period
    }

    /// The least preperiod: 0, or one more than the last n with G(n + period) != G(n).
    #[must_use]
    pub fn preperiod(&self) -> u64 {
        self.repeat.preperiod
    }

    /// The largest nim-value of the game.
    #[must_use]
    pub fn max_value(&self) -> u16 {
        self.max_value
    }

    /// The theorem that proves the period.
    #[must_use]
    pub fn theorem(&self) -> Theorem {
        self.repeat.proof.as_ref().expect("the period is proved").theorem
    }

    /// The certificate of the proof. `None` if the name of the rule is not a code or a name of this game, so that no
    /// reader could compute the values ([`Rule::from_moves`] takes any name), and in the cases of [`Certificate::new`].
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }
}

impl Certificate {
    /// Writes the certificate to a file, and replaces a file of this name.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// ```
    /// use grundy::period::{self, certificate::Certificate};
    ///
    /// # let home = tempfile::tempdir()?;
    /// # let file = &home.path().join("kayles.json");
    /// let kayles = "kayles".parse()?;
    /// let proved = period::prove(&kayles, 1 << 20)?.expect("a period");
    /// proved.certificate().expect("the name is a code").write(file)?;
    ///
    /// let certificate = Certificate::read(file)?;
    /// certificate.verify()?;
    /// assert_eq!((certificate.period, certificate.preperiod), (12, 71));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_json()).map_err(Error::io("writing", path))
    }

    /// Reads a certificate from a file; [`Certificate::verify`] checks what it states.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Certificate`] if the file is not a certificate, was altered, or is longer than
    /// [`MAX_BYTES`]. Both name the file.
    pub fn read(path: &Path) -> Result<Certificate> {
        let mut text = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
        read.map_err(Error::io("reading", path))?;
        let parsed = if text.len() as u64 > MAX_BYTES {
            let what = format!("longer than {MAX_BYTES} bytes, the maximum length of a certificate");
            Err(Error::Certificate { what })
        } else {
            Certificate::parse(&text)
        };
        parsed.map_err(|error| match error {
            Error::Certificate { what } => {
                Error::Certificate { what: format!("{}: {what}", printable(&path.to_string_lossy())) }
            }
            other => other,
        })
    }

    /// Checks every statement of the certificate. Computes [`Certificate::checked_through`] values from the rule alone
    /// and holds all of them in memory, two bytes each. [`Certificate::check`] takes values that are already computed,
    /// also those of a [`RunReader`](crate::run::RunReader).
    ///
    /// # Errors
    /// [`Error::Certificate`] at the first statement that is false; errors of computing the values.
    pub fn verify(&self) -> Result<()> {
        let rule = self.judge()?;
        let method = Method::default();
        let values = solver::values(&rule, method, index(self.checked_through))?;
        self.check(method, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods and preperiods of data/periods.csv, one for each theorem that applies to an octal game, and no period.
    #[test]
    fn published_periods_are_proved_and_their_certificates_hold() {
        for (game, period, preperiod, max_value) in
            [(".07", 34, 53, 9), (".77", 12, 71, 8), (".16", 149_459, 105_351, 23)]
        {
            let proved = prove(&game.parse().unwrap(), 1 << 21).unwrap().unwrap();
            assert_eq!(
                (proved.period(), proved.preperiod(), proved.max_value()),
                (period, preperiod, max_value),
                "{game}"
            );
            let certificate = proved.certificate().unwrap();
            assert_eq!((&proved.rule().digest(), proved.theorem()), (&certificate.rule, certificate.theorem), "{game}");
            certificate.verify().unwrap();
        }
        for (game, limit) in [("grundy", 1 << 16), ("nim", 1 << 20), ("kayles", 50)] {
            assert_eq!(prove(&game.parse().unwrap(), limit).unwrap(), None, "{game}");
        }
    }

    /// A certificate names the game, so that its reader can compute the values.
    #[test]
    fn rule_whose_name_is_no_game_is_proved_without_a_certificate() {
        let kayles: Rule = "kayles".parse().unwrap();
        for name in ["mine", "kayles", "0.07"] {
            let rule = Rule::from_moves(name, kayles.moves().to_vec()).unwrap();
            let proved = prove(&rule, 1 << 16).unwrap().unwrap();
            assert_eq!((proved.period(), proved.preperiod(), proved.certificate()), (12, 71, None), "{name}");
        }
    }

    #[test]
    fn altered_and_false_certificates_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = &home.path().join("kayles.json");
        let proved = prove(&"kayles".parse().unwrap(), 1 << 16).unwrap().unwrap();
        let certificate = proved.certificate().unwrap();
        certificate.write(path).unwrap();
        assert_eq!(Certificate::read(path).unwrap(), *certificate);
        std::fs::write(path, certificate.to_json().replace("\"preperiod\": 71", "\"preperiod\": 72")).unwrap();
        assert!(matches!(Certificate::read(path), Err(Error::Certificate { .. })));
        // The same object in another form: the seal is that of the bytes.
        let object: serde_json::Value = serde_json::from_str(&certificate.to_json()).unwrap();
        for other in [object.to_string(), certificate.to_json() + "\n", certificate.to_json().replace('\n', "\r\n")] {
            assert!(matches!(Certificate::parse(&other), Err(Error::Certificate { .. })), "{other}");
        }
        let wrong = Certificate { max_value: 7, ..certificate.clone() }.sealed();
        assert!(matches!(wrong.verify(), Err(Error::Certificate { .. })));
        std::fs::write(path, vec![b' '; index(MAX_BYTES) + 1]).unwrap();
        assert!(matches!(Certificate::read(path), Err(Error::Certificate { .. })));
        assert!(matches!(Certificate::read(home.path()), Err(Error::Io { .. })));
    }
}
