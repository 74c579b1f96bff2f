//! Whatever is written, the answer is jobs or a sentence.

use proptest::prelude::*;

use super::*;

const MACHINE: Machine<'_> = Machine {
    cores: 2,
    default_directory: "/tmp",
    file_size: &|path| path.ends_with('0').then_some(1 << 20),
    is_device: &|_| false,
    destroys: false,
    seed: 1,
    size_scale: None,
    runtime_scale: None,
    clones_max: Some(8),
    clients: std::num::NonZeroU32::MIN,
};

fn read_all(text: &str) {
    for units in [Units::Strict, Units::Fio] {
        let lowered = parse_with(units, text, &[("x", "bs=4k\n")])
            .and_then(|file| lower(&file, &MACHINE).map(|_| ()));
        if let Err(error) = lowered {
            assert!(!error.to_string().is_empty());
        }
    }
}

proptest! {
    #[test]
    fn any_text(text in "[a-km=#;$(){}%^*/+.,:0-9µ \\[\\]\n-]{0,200}") {
        read_all(&text);
    }

    #[test]
    fn any_value_of_any_option(index in 0_usize..1_000, value in "[0-9kmgib%.:,/()$a-z+µ-]{0,12}") {
        let names: Vec<&str> = options::all().map(|known| known.name).collect();
        let name = names[index % names.len()];
        read_all(&format!("[a]\nrw=randrw\nsize=1m\n{name}={value}\n"));
        let args = vec!["--name=a".to_owned(), "--rw=rw".to_owned(), format!("--{name}"), value];
        let _ = with(Units::Strict, &[], |options| from_args(&args, options));
    }

    /// What is read strictly is what fio reads.
    #[test]
    fn strict_is_a_part_of_fio(
        value in "[0-9]{1,3}[.]?[0-9]{0,1}[kmgx]?[ib]{0,2}",
        kb in "1000|1024",
    ) {
        let text = format!("[a]\nrw=read\nkb_base={kb}\nbs={value}\nruntime={value}\n");
        if let Ok(strict) = parse_with(Units::Strict, &text, &[]) {
            let fio = parse_with(Units::Fio, &text, &[]).expect("strict took it");
            prop_assert_eq!(strict.jobs, fio.jobs);
        }
    }
}
