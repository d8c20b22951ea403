"""Who looks for a name of one of the five publications finds it.

The lists are the names that each publication uses for its parameters, algorithms, structures, data
and results, in its own spelling, with the words of the Portuguese thesis beside their translation.
They were taken from the publications, not from the pages.
"""

import re

import pytest

from spatialq.functions.catalogue import catalogue
from spatialq.ql4bim.operators import operators

from .pages import ROOT

OWM = """
Overlap Window Method; OWM; Hybrid Overlap Filter; HyOF; Digital Terrain Model; DTM; point
cloud; bounding box; sliding window; SW; ω; window size; overlap; O_x; O_y; o_x; o_y; Local
Lowest Point; LLP; Geographic scope; GS; minNumPoints; density; seed-points; P_S; ground point;
non-ground point; initial reference surface; Algorithm 1; ComputeSteps;
ComputeSlidingWindowCenter; search; coveredPoints; LLPsFound; countLLP; ComputeSeedPoints;
FillEmptyCells; B; OpenMP; collapse; dynamic; octree; quadtree; Algorithm 2; ComputeNumSteps;
searchMin; numPts; GroundSeedPoints; TBB; oneTBB; parallel_for; work-stealing;
concurrent_vector; treelet; lev; memoization; memoization exploiting overlap; memoization saving
min; MinRadius; MaxNumber; oneAPI; SYCL; CUDA; S-CPU; S-iGPU; S-dGPU; S-CUDA; TBB base; Morton
code; space filling curve; binary radix tree; BRT; BVH; LBVH; O1; O2; O3; O4; gold; valid ground
points; Alcoy; Arzua; Brion forestal; Brion urban; tree construction; OWM traversal; speedup;
roofline; Arithmetic Intensity; Attainable Performance; headroom; power efficiency; ISPRS; R;
Table 1; Table 2; Table 3; Table 4; Table 5; Table 6; Table 7; Table 8; Table 9; Table 10
"""
POPS = """
POPS; PARKER; GEDI; MOLA; IDW; Kriging; interpolation; ROI; two-level division; example;
exScale; exStep; patch; fScales; fSteps; feature scales; core method; raw feature extraction;
feature aggregation; feature vector; mean; variance; skewness; kurtosis; min; Q1; median; Q3;
max; PCA; STAT; covariance matrix; eigenvalues; explained variance ratios; pseudo-one-pass
sweep; POPS-NMS; superpatch; spScaleX; spScaleY; go-right; go-up; incremental data transfer;
memory-aware; multi-scale; shared memory; global memory; workspace; registers; SIMT;
__syncthreads; block; parallel reduction; CuPy; PyCUDA; Munro and Raman; selection; MPI;
resolution; small; medium; large; cross validation; Cohen's kappa; train-test split; data
balancing; Wilcoxon; critical difference diagram; t-SNE; Socompa; Borku; Olympus Mons;
simulated; 30000; near real-time; Table 1
"""
LOD = """
Layered point clouds; LPC; Modifiable Nested Octree; hybrid voxel-point; color-filtered; octree;
leaf node; inner node; T; counting sort; hierarchical counting sort; counting grid; 256;
merging; pyramid; unmergeable; target pointers; pointer pyramid; insert; recursive partitioning;
extended counting grid; teapot-in-a-stadium; voxel sampling; sampling grid; 128; first-come;
random; average; weighted; neighborhood; dilation; accepted samples; occupied voxels; capacity;
workgroup; atomicOr; atomicMax; atomicAdd; bitmask; split; voxelize; replacing; additive;
view-frustum; pixel-sized; 64 pixels; octant; Potree; blue-noise; Retz; Palmyra; Saint Roman;
CA21 Bunds; Niederweiden; PSNR; SSIM; LPIPS; close-up; zoomed-out; high-quality shading; MP/s;
in-core; out-of-core; bottom-up; view-dependent; Gaussian; Lanczos; full-precision; 18-18-18-10;
hierarchical voxel encoding; BC; z-order; streaming; Table 1; Table 2
"""
PLANES = """
3D-KHT; Hough; Limberger; Oliveira; octree; root; coplanarity; coplanaridade; covariance matrix;
matriz de covariância; eigenvalues; autovalores; eigenvectors; autovetores; maximum thickness;
espessura máxima; minimum isotropy; isotropia mínima; centroid; centroide; depth; profundidade;
node; nodo; vector P; vector N; vector T; start level; spherical accumulator; acumulador
esférico; θ; φ; rho; Jacobian; trivariate Gaussian; two standard deviations; accumulator ball;
cell; célula; vote; voto; minimum vote; votoMinimo; voting; votação; peak detection; detecção de
picos; low-pass filter; visited; auxiliary vector; normal; binormal; ellipsoid;
representativeness; Algorithm 1; Algorithm 2; ContabilizaVoto; dynamic parallelism; paralelismo
dinâmico; hybrid approach; abordagem híbrida; barrier; synchronisation; reduction; shared
memory; Thrust; atomic; linearised; OpenMP; cudaEvents; Kepler; Computer; Room; Utrecht; Museum;
Box; Bremen; GPU PD; GPU H; Table 5.1; Table 5.2
"""
QL4BIM = """
QL4BIM; BIM; IFC; IfcProduct; IfcTriangulatedFaceSet; xBIM; partial model; Select; Update;
Delete; Where; metric operators; Distance; CloserThan; FartherThan; directional operators;
Above; Below; NorthOf; SouthOf; EastOf; WestOf; topological operators; Touch; Within; Contains;
IntersectsWith; disjoint; equals; touch; contains; inside; overlap; covers; covered_by;
FindObjectsWithinXMeters; epsilon test; tolerance; TriangleMesh; TrianglePair; TrianglePairMesh;
inner mesh; outer mesh; offset; ray test; Möller; search mesh; all mesh intersections; self
intersection; brute-force; preselection; candidates; bounding box; R-tree; Guttman; R*-tree;
Beckmann; M; m; fanout; ChooseLeaf; SplitNode; Linear Split; bulk loading; index array; box
array; queue; overflow; CUDAMeshIntersector; CUDARTree; mesh partitioning; fragments; levels of
parallelism; warp; kernel timeout; NumBenchmarkRuns; MinNumNodes; MaxNumNodes;
RTreeQueryBlockSize; CUDAMeshIntersectorBlockSize; StartingMaxNumRunBlockTests;
MinNumRunBlockTests; TargetMillisecondsPerKernelRun; AC11-Institute; TUM Nordgebaeude; LINQ;
managedCUDA; C#; Dynamic Parallelism; single precision; double precision; MEP; Figure 5.1;
Figure 5.2; Figure 5.3; Figure 5.4; Figure 5.5; Figure 5.6; Figure 5.7; Figure 5.8; Figure 5.9;
Figure 5.10; Table 5.1
"""
TERMS = {"owm": OWM, "pops": POPS, "lod": LOD, "planes": PLANES, "ql4bim": QL4BIM}


def terms(seed):
    return [" ".join(term.split()) for term in TERMS[seed].split(";")]


def names_of_the_package():
    """Operators with their other names, functions and parameters."""
    names = {name for each in operators() for name in (each.name, *each.shorts)}
    for name, function in catalogue().items():
        names |= {name, *(each.name for each in function.parameters)}
    return names


def mentions(text, term):
    """Whether a text has a term as a word of its own, or its plural, in any case of letters."""
    first, last = (r"(?<!\w)" if re.match(r"\w", term) else ""), r"(?:s|es)?(?!\w)"
    # a term of one letter is a name: its case counts
    flags = re.IGNORECASE if len(term) > 1 else 0
    return re.search(first + re.escape(term) + last, text, flags) is not None


@pytest.mark.parametrize("seed", TERMS)
def test_every_name_of_a_publication_is_found(seed):
    page = " ".join((ROOT / f"docs/papers/{seed}.md").read_text(encoding="utf-8").split())
    names = names_of_the_package()
    missing = [term for term in terms(seed) if not (mentions(page, term) or term in names)]
    assert not missing


def test_what_is_a_mention():
    assert mentions("the LLPs of windows", "LLP")
    assert mentions("a Sliding window", "sliding window")
    assert not mentions("overlapping", "overlap")
    assert not mentions("a b", "B")
    assert "tolerance" in names_of_the_package()
    assert "Within" in names_of_the_package()


@pytest.mark.parametrize("seed", TERMS)
def test_a_page_shows_something_that_runs(seed):
    text = (ROOT / f"docs/papers/{seed}.md").read_text(encoding="utf-8")
    assert re.search(r"^```(sql|python|ql4bim)$", text, re.MULTILINE)
