//! `paceline help-files`: writes man pages and shell completions, for packages.

use std::fs;
use std::io;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, HelpFilesArgs};
use crate::error::{Error, Result};

pub(crate) fn command(args: &HelpFilesArgs) -> Result<()> {
    write(args)
        .map_err(|error| Error::io(format_args!("write help files to {}", args.folder.display()), &error))
}

fn write(args: &HelpFilesArgs) -> io::Result<()> {
    fs::create_dir_all(&args.folder)?;
    clap_mangen::generate_to(Cli::command(), &args.folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "paceline", &args.folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help texts are plain English (CONTRIBUTING.md): those of commands, options and values have sentences of at
    /// most 25 words.
    #[test]
    fn help_is_in_short_sentences() {
        let mut long = Vec::new();
        let mut look = |place: &str, text: Option<&clap::builder::StyledStr>| {
            let text = text.map(ToString::to_string).unwrap_or_default();
            for sentence in text.split_inclusive(['.', '!']).flat_map(|part| part.split(" [default")) {
                if sentence.split_whitespace().count() > 25 {
                    long.push(format!("{place}: {sentence}"));
                }
            }
        };
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            look(command.get_name(), command.get_about());
            for argument in command.get_arguments() {
                look(&format!("{} {}", command.get_name(), argument.get_id()), argument.get_help());
                for value in argument.get_possible_values() {
                    look(value.get_name(), value.get_help());
                }
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        write(&HelpFilesArgs { folder: folder.path().to_path_buf() }).unwrap();
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = format!("paceline-{}.1", command.get_name());
            assert!(folder.path().join(&page).is_file(), "{page}");
        }
        for file in ["paceline-gateway-doctor.1", "paceline.bash", "_paceline", "paceline.fish"] {
            assert!(fs::read_to_string(folder.path().join(file)).unwrap().contains("doctor"), "{file}");
        }
    }
}
