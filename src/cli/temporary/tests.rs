use super::*;
use std::fs;

fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates a directory as a killed process leaves it: with its marker, without the lock.
fn left_behind(place: &Path, name: &str) -> PathBuf {
    let dir = place.join(name);
    fs::create_dir_all(dir.join("run")).unwrap();
    fs::write(dir.join(MARKER), TEXT).unwrap();
    fs::write(dir.join("run/values.npy"), [0; 100]).unwrap();
    dir
}

#[test]
fn stale_directory_is_removed_and_one_in_use_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let used = Temporary::new_in(place.path(), "grundy-verify-").unwrap();
    fs::create_dir(used.run()).unwrap();
    left_behind(place.path(), "grundy-verify-dead");
    left_behind(place.path(), "grundy-period-dead");
    let other = Temporary::new_in(place.path(), "grundy-period-").unwrap();
    assert_eq!(names(place.path()).len(), 2, "{:?}", names(place.path()));
    assert!(used.run().is_dir() && !other.run().exists());
    drop((used, other));
    assert!(names(place.path()).is_empty());
}

#[test]
fn only_stale_directories_of_grundy_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("grundy-verify-empty")).unwrap();
    fs::create_dir(at("grundy-verify-other")).unwrap();
    fs::write(at("grundy-verify-other").join(MARKER), TEXT.replace("grundy", "foobar")).unwrap();
    fs::create_dir_all(at("grundy-verify-directory").join(MARKER)).unwrap();
    fs::write(at("grundy-verify-file"), TEXT).unwrap();
    left_behind(place.path(), "somebodys-directory");
    left_behind(place.path(), "grundy-run-1");
    let elsewhere = tempfile::tempdir().unwrap();
    let target = left_behind(elsewhere.path(), "target");
    std::os::unix::fs::symlink(&target, at("grundy-verify-link")).unwrap();
    fs::create_dir(at("grundy-verify-linked-marker")).unwrap();
    std::os::unix::fs::symlink(target.join(MARKER), at("grundy-verify-linked-marker").join(MARKER)).unwrap();
    // A stale directory with a symbolic link: the link is removed, its target stays.
    let stale = left_behind(place.path(), "grundy-period-stale");
    std::os::unix::fs::symlink(&target, stale.join("link")).unwrap();
    let before = names(place.path());
    drop(Temporary::new_in(place.path(), "grundy-verify-").unwrap());
    let after: Vec<String> = before.into_iter().filter(|name| name != "grundy-period-stale").collect();
    assert_eq!(names(place.path()), after);
    assert!(target.join("run/values.npy").exists() && target.join(MARKER).exists());
}
