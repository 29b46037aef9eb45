//! `grundy compare`: where two computations of a game agree.

use super::layout::{counted, fitted, machine_names};
use super::published::manifest_of;
use super::{Usage, output, source};
use anyhow::{Result, anyhow};
use grundy::error::printable;
use grundy::publish::{self, Comparison, Manifest, Obstacle};
use grundy::table::digest::SEGMENT;
use indicatif::HumanCount;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `grundy compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy compare runs/grundy there/manifest.json\n\n\
                        Compares the digests that both state: those at segment boundaries (every 2^24 values, or as \
                        'publish --segment' states), those at the ends, and of two runs those of all commits. Of a \
                        published directory, the SHA-256 of its files are checked first. Of a run directory, nothing \
                        but the journal is read. Exit status 3 if digests differ, or if all values are equal, but \
                        the largest value, its position, or (in the same space) the number or the last of the rare \
                        positions is not; 4 if no digest is common to both.\n\n\
                        JSON keys: game counts agree differs contradiction kernels machines confirmed obstacle; \
                        'differs' is null, or has the keys segment from to; 'contradiction' is null, or the key of a \
                        manifest that contradicts equal digests; 'machines' contains null where the machine of values is not \
                        known; 'confirmed' is the number of first values that different kernels on different machines \
                        computed with equal digests; 'obstacle' is null, or the reason why no further values are \
                        confirmed: differs, no-common-digest, same-kernel, unknown-machine, same-machine or contradiction.")]
pub(crate) struct Args {
    /// Run directory, published directory, or manifest.
    #[arg(value_name = "A")]
    one: PathBuf,
    /// Run directory, published directory, or manifest to compare it with.
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Machine that computed the values of A and B for which an earlier version recorded none, as 'computed on' in
    /// 'grundy status' shows it, such as 'x86_64 AMD EPYC 9B45' [default: unknown].
    #[arg(long, value_name = "TEXT")]
    machine: Option<String>,
    /// Note in the run directory A what B confirms, for 'status' and 'publish'.
    #[arg(long)]
    record: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn compare(args: &Args) -> Result<ExitCode> {
    let (mut one, mut other) = (manifest_of(&args.one)?, manifest_of(&args.other)?);
    name_machine(args.machine.as_deref(), &mut [&mut one, &mut other])?;
    let comparison = compared((&args.one, &one), (&args.other, &other))?;
    let differ = comparison.differs.is_some() || comparison.contradiction.is_some();
    if args.record && !differ {
        let confirmation = comparison.confirmation(&other).ok_or_else(|| {
            let (one, other) = (args.one.display(), args.other.display());
            anyhow!("{other} does not confirm {one}: {}", comparison.obstacle.map_or("no values", reason))
        })?;
        publish::record(source::run_directory(&args.one)?, confirmation)?;
    }
    output::print(|out| {
        if args.json {
            return output::object(out, &comparison);
        }
        let [a, b] = comparison.counts.map(HumanCount);
        let agree = match comparison.agree {
            0 if comparison.differs.is_none() => "no digest is stated by both".to_owned(),
            0 => "no digest is equal".to_owned(),
            agree => format!("the first {} have equal digests", counted(agree, "values")),
        };
        let mut text = format!("{}: {a} and {b} values; {agree}", comparison.game);
        if let Some(differs) = comparison.differs {
            let (from, to, segment) = (differs.from, differs.to, differs.segment);
            text += &format!("; the first difference is in {}..{}", HumanCount(from), HumanCount(to));
            if to - from <= SEGMENT {
                text += &format!(", in segment {segment}");
            }
        }
        if let Some(key) = comparison.contradiction {
            text += &format!("; but '{key}' differs, which the values determine: one of the two is wrong");
        }
        let by = |i: usize| {
            let (kernels, machines) = (comparison.kernels[i].join(", "), machine_names(&comparison.machines[i]));
            printable(&format!("kernel {kernels} on {machines}"))
        };
        text += &format!("; computed by {}, and by {}: ", by(0), by(1));
        text += &match comparison.confirmed {
            0 => "not confirmed".to_owned(),
            values => format!("{} confirmed", counted(values, "values")),
        };
        if let Some(obstacle) = comparison.obstacle {
            text += &format!(", because {}", reason(obstacle));
        }
        Ok(out.write_all(fitted(&(text + "\n")).as_bytes())?)
    })?;
    Ok(ExitCode::from(match comparison.agree {
        _ if differ => 3,
        0 => super::INCOMPLETE,
        _ => 0,
    }))
}

/// Compares two manifests, each with its path.
pub(super) fn compared((path, one): (&Path, &Manifest), (there, other): (&Path, &Manifest)) -> Result<Comparison> {
    publish::compare(one, other).ok_or_else(|| {
        let (path, there) = (path.display(), there.display());
        anyhow!("{path} is of the game {}, {there} of {}; compare computations of the same game", one.game, other.game)
    })
}

/// Enters the machine of `--machine` where it is not known.
pub(super) fn name_machine(machine: Option<&str>, manifests: &mut [&mut Manifest]) -> Result<()> {
    let Some(machine) = machine else { return Ok(()) };
    let named = manifests.iter_mut().map(|manifest| manifest.name_machine(machine)).filter(|is_needed| *is_needed);
    if named.count() == 0 {
        return Err(Usage("the machine of all values is recorded; leave out --machine".into()).into());
    }
    Ok(())
}

/// Words the reason why no more values are confirmed, and what to do.
pub(super) fn reason(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Differs => "the digests differ; 'grundy verify --level recompute' finds the wrong values",
        Obstacle::NoCommonDigest => {
            "no digest is known of both after the same number of values; compute both to the same number, or \
             beyond 16,777,216 values, or the segment of the published directory"
        }
        Obstacle::SameKernel => {
            "the same kernel computed both; compute one of them again with another --kernel, on another processor model"
        }
        Obstacle::UnknownMachine => {
            "the machine that computed some of the values is not recorded; name it with --machine, or compute again"
        }
        Obstacle::SameMachine => {
            "both may have been computed on the same machine; compute one of them on another processor model"
        }
        Obstacle::Contradiction => "one of the two states a property that contradicts the values",
        _ => "the computations are not independent",
    }
}
