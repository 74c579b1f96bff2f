//! Equal cells from an origin on that double in length before there are too many of them.

/// What one cell holds.
pub(crate) trait Mergeable: Clone + Default {
    /// Adds all of `other`.
    fn merge(&mut self, other: &Self);
}

/// Cells of one length; cell 0 begins at the origin. Memory is bounded however long it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid<C> {
    cells_max: usize,
    cell_ns: u64,
    cells: Vec<C>,
}

impl<C: Mergeable> Grid<C> {
    /// Returns a grid that begins with cells of `cell_ns`.
    pub(crate) fn new(cell_ns: u64, cells_max: usize) -> Self {
        assert!(cell_ns > 0 && cells_max > 1);
        Self { cells_max, cell_ns, cells: Vec::new() }
    }

    /// Returns the grid of these cells; `None` where their length is no doubling of `first_ns`,
    /// there are too many of them, or as many are longer than any time.
    pub(crate) fn from_parts(
        first_ns: u64,
        cells_max: usize,
        cell_ns: u64,
        cells: Vec<C>,
    ) -> Option<Self> {
        let times = cell_ns / first_ns;
        let is_doubled = cell_ns.is_multiple_of(first_ns) && times.is_power_of_two();
        cell_ns.checked_mul(cells_max as u64)?;
        (is_doubled && cells.len() <= cells_max).then_some(Self { cells_max, cell_ns, cells })
    }

    /// Makes room up to the cell that holds `at_ns`. Returns how often the cells were doubled.
    pub(crate) fn reach(&mut self, at_ns: u64) -> u32 {
        let mut doubled = 0;
        while at_ns / self.cell_ns >= self.cells_max as u64 {
            self.double();
            doubled += 1;
        }
        let needed = (at_ns / self.cell_ns) as usize + 1;
        if self.cells.len() < needed {
            // Bound: `cells_max`, by the doubling above.
            self.cells.resize_with(needed, C::default);
        }
        doubled
    }

    fn double(&mut self) {
        self.cell_ns *= 2;
        let merged = |pair: &[C]| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|second| sum.merge(second));
            sum
        };
        self.cells = self.cells.chunks(2).map(merged).collect();
    }

    /// Adds all of `other`, which must have the same origin.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.cell_ns < other.cell_ns {
            self.double();
        }
        while other.cell_ns < self.cell_ns {
            other.double();
        }
        if self.cells.len() < other.cells.len() {
            self.cells.resize_with(other.cells.len(), C::default);
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.merge(theirs);
        }
    }

    /// Returns the present length of a cell.
    pub(crate) fn cell_ns(&self) -> u64 {
        self.cell_ns
    }

    /// Returns the cells from the origin on.
    pub(crate) fn cells(&self) -> &[C] {
        &self.cells
    }

    /// Returns a cell that [`Self::reach`] has made room for.
    pub(crate) fn cell_mut(&mut self, index: usize) -> &mut C {
        &mut self.cells[index]
    }
}
