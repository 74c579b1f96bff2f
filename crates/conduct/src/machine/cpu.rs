//! What a processor is called, from what the kernel says of it.

/// Looks for each of these features by the test of that name.
macro_rules! found {
    ($test:ident, $($feature:tt),+) => {
        [$(($feature, std::arch::$test!($feature))),+]
    };
}

/// Returns which of the features that libraries choose their code by are there.
pub(super) fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let looked_for = found!(
        is_x86_feature_detected,
        "sse4.2",
        "aes",
        "pclmulqdq",
        "sha",
        "avx2",
        "bmi2",
        "adx",
        "vaes",
        "vpclmulqdq",
        "avx512f",
        "avx512vl",
        "gfni"
    );
    #[cfg(target_arch = "aarch64")]
    let looked_for =
        found!(is_aarch64_feature_detected, "aes", "pmull", "sha2", "sha3", "crc", "lse", "sve");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let looked_for: [(&str, bool); 0] = [];
    looked_for.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}

/// Who makes cores, by the number in the registers of arm64.
struct Maker {
    number: u32,
    name: &'static str,
    /// Each by the number that the maker gave it.
    cores: &'static [(u32, &'static str)],
}

/// Names of what arm64 kernels give numbers of only.
///
/// Source: the registers' fields as each maker documents them (Arm: *MIDR_EL1*).
const MAKERS: [Maker; 10] = [
    Maker {
        number: 0x41,
        name: "ARM",
        cores: &[
            (0xd03, "Cortex-A53"),
            (0xd04, "Cortex-A35"),
            (0xd05, "Cortex-A55"),
            (0xd07, "Cortex-A57"),
            (0xd08, "Cortex-A72"),
            (0xd09, "Cortex-A73"),
            (0xd0a, "Cortex-A75"),
            (0xd0b, "Cortex-A76"),
            (0xd0c, "Neoverse-N1"),
            (0xd0d, "Cortex-A77"),
            (0xd40, "Neoverse-V1"),
            (0xd41, "Cortex-A78"),
            (0xd44, "Cortex-X1"),
            (0xd46, "Cortex-A510"),
            (0xd47, "Cortex-A710"),
            (0xd48, "Cortex-X2"),
            (0xd49, "Neoverse-N2"),
            (0xd4a, "Neoverse-E1"),
            (0xd4d, "Cortex-A715"),
            (0xd4e, "Cortex-X3"),
            (0xd4f, "Neoverse-V2"),
            (0xd80, "Cortex-A520"),
            (0xd81, "Cortex-A720"),
            (0xd82, "Cortex-X4"),
            (0xd84, "Neoverse-V3"),
            (0xd8e, "Neoverse-N3"),
        ],
    },
    Maker { number: 0x42, name: "Broadcom", cores: &[(0x516, "ThunderX2")] },
    Maker { number: 0x43, name: "Cavium", cores: &[(0x0a1, "ThunderX"), (0x0af, "ThunderX2")] },
    Maker { number: 0x46, name: "Fujitsu", cores: &[(0x001, "A64FX")] },
    Maker {
        number: 0x48,
        name: "HiSilicon",
        cores: &[(0xd01, "TaiShan-v110"), (0xd02, "TaiShan-v120")],
    },
    Maker { number: 0x4e, name: "NVIDIA", cores: &[(0x004, "Carmel")] },
    Maker { number: 0x51, name: "Qualcomm", cores: &[(0xc00, "Falkor"), (0x001, "Oryon")] },
    Maker {
        number: 0x61,
        name: "Apple",
        cores: &[(0x022, "Icestorm-M1"), (0x023, "Firestorm-M1")],
    },
    Maker { number: 0x6d, name: "Microsoft", cores: &[(0xd49, "Cobalt-100")] },
    Maker { number: 0xc0, name: "Ampere", cores: &[(0xac3, "Ampere-1"), (0xac4, "Ampere-1a")] },
];

/// Returns the processor's name from `/proc/cpuinfo` and, where the machine has one, the name of
/// its board from the device tree; of cores of several kinds all of them.
pub(super) fn model(cpuinfo: &str, board: Option<&str>) -> Option<String> {
    let board =
        board.map(|board| board.trim_matches(['\0', ' ', '\n'])).filter(|of| !of.is_empty());
    // x86, MIPS, POWER and RISC-V have names.
    let named = ["model name", "cpu model", "cpu", "uarch"].iter();
    if let Some(name) = named.flat_map(|key| values(cpuinfo, key)).next() {
        return Some(name.to_owned());
    }
    let mut cores: Vec<String> = Vec::new();
    let makers = values(cpuinfo, "CPU implementer");
    for core in makers.zip(values(cpuinfo, "CPU part")).filter_map(|(of, part)| core(of, part)) {
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    match (cores.is_empty(), board) {
        (true, board) => board.map(str::to_owned),
        (false, None) => Some(cores.join(" + ")),
        (false, Some(board)) => Some(format!("{} ({board})", cores.join(" + "))),
    }
}

/// Returns every value of a key, that of each core.
fn values<'a>(cpuinfo: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let own = pairs.filter(move |(name, _)| name.trim() == key);
    own.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Returns the name of a core by its two numbers, `0x41` and `0xd0c`.
fn core(maker: &str, part: &str) -> Option<String> {
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (maker, part) = (number(maker)?, number(part)?);
    let Some(Maker { name, cores, .. }) = MAKERS.iter().find(|of| of.number == maker) else {
        return Some(format!("implementer {maker:#x} part {part:#x}"));
    };
    let known = cores.iter().find(|(of, _)| *of == part);
    let unknown = || format!("{name} part {part:#x}");
    Some(known.map_or_else(unknown, |(_, core)| format!("{name} {core}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an arm64 kernel writes it for each core.
    fn arm64(core: u32, implementer: &str, part: &str) -> String {
        format!(
            "processor\t: {core}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes pmull sha1 \
             sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop\n\
             CPU implementer\t: {implementer}\n\
             CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\n\
             CPU revision\t: 1\n\n"
        )
    }

    #[test]
    fn cores_of_arm64_have_names() {
        let two = |implementer, part| arm64(0, implementer, part) + &arm64(1, implementer, part);
        for (implementer, part, name) in [
            ("0x41", "0xd0c", "ARM Neoverse-N1"),
            ("0x41", "0xd40", "ARM Neoverse-V1"),
            ("0x41", "0xd4f", "ARM Neoverse-V2"),
            ("0xc0", "0xac3", "Ampere Ampere-1"),
            ("0x61", "0x023", "Apple Firestorm-M1"),
            ("0x41", "0xfff", "ARM part 0xfff"),
            ("0x99", "0x001", "implementer 0x99 part 0x1"),
        ] {
            assert_eq!(model(&two(implementer, part), None).as_deref(), Some(name));
        }
    }

    #[test]
    fn cores_of_two_kinds_and_the_board_are_told() {
        let cores = arm64(0, "0x41", "0xd05") + &arm64(4, "0x41", "0xd0b");
        assert_eq!(model(&cores, None).as_deref(), Some("ARM Cortex-A55 + ARM Cortex-A76"));
        let board = "Raspberry Pi 4 Model B Rev 1.4\0";
        let cores = arm64(0, "0x41", "0xd08")
            + "Hardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
        assert_eq!(
            model(&cores, Some(board)).as_deref(),
            Some("ARM Cortex-A72 (Raspberry Pi 4 Model B Rev 1.4)")
        );
        assert_eq!(model("", Some(board)).as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
        assert_eq!(model("", None), None);
    }

    #[test]
    fn what_has_a_name_keeps_it() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
                   model name\t: AMD EPYC 7763 64-Core Processor\nstepping\t: 1\n";
        assert_eq!(model(x86, None).as_deref(), Some("AMD EPYC 7763 64-Core Processor"));
        let power = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n";
        assert_eq!(model(power, None).as_deref(), Some("POWER9, altivec supported"));
    }
}
