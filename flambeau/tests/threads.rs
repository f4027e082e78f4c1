//! Results are bitwise independent of the number of threads: whole programs over every family of kernels that divides
//! its work, at sizes that give parts of unequal length; also sessions with different numbers of threads running
//! concurrently.

use flambeau::tensor::DType;
use flambeau::{Entry, IValue, Session, Tensor};

/// Functions of a matrix, another of the same sizes, and a batch of images.
const SOURCE: &str = "
def chain(x, y, image):
    b = torch.sigmoid(x * y + x) * torch.tanh(y)
    return torch.relu(b - x)

def chain_of_strides(x, y, image):
    return torch.relu(x.t() * y[0, 0] + y.t()) - x.t()[:, :1]

def elements(x, y, image):
    s = x.clone()
    s.mul_(y).add_(1)
    return [torch.exp(x), x + y, x + y[0], x * y[:, :1], x[:, ::2] - 1, x.t() + y.t().contiguous(), s,
            torch.where(x > y, x, y), x.to(torch.float64) / 3, x.to(torch.float16) * 2, (x * 100).to(torch.int64) // 7,
            torch.addcmul(x, y, x), torch.lerp(x, y, 0.3), torch.pow(x.abs(), 1.5), torch.full([200, 301], 2.5)]

def copies(x, y, image):
    return [x.t().contiguous(), image.permute([0, 2, 3, 1]).contiguous(), torch.cat([x, y], 1), torch.stack([x, y], 2),
            x.repeat(2, 1), x.flip([0, 1]), x.roll(3, 0), torch.tril(x)]

def folds(x, y, image):
    return [x.sum(), x.t().sum(), x.sum(0), x.sum(1), x.t().sum(0), x.mean(), image.sum([0, 2]), image.mean([1, 3]),
            x.double().sum(0), x.view(-1, 7).sum(0), x.view(-1, 7).sum(1), x.view(7, -1).sum(1), x.view(7, -1).sum(0),
            x.max(), x.amin([0]), x.argmax(1), x.argmax(0), x.std(), x.var(1), x.prod(1), torch.norm(x),
            x.reshape(-1, 25).sum(0), (x > 0).sum(), (x > 0).all(0), x.max(1)[0], x.min(0)[1]]

def rows(x, y, image):
    return [torch.softmax(x, 1), torch.softmax(x, 0), torch.log_softmax(x, 1), torch.logsumexp(x, [1]),
            torch.cumsum(x, 1), torch.cumsum(x, 0), torch.sort(x, 1)[0], torch.sort(x, 0)[1], torch.topk(x, 5, 1)[1],
            torch.median(x, 1)[0], torch.fft_rfft(x).abs()]

def norms(x, y, image):
    w, c = y[0], image[0, :, 0, 0].abs()
    return [torch.layer_norm(x, [301], w, w), torch.layer_norm(x, [301]), torch.group_norm(image, 3, c, c),
            torch.batch_norm(image, c, c, c, c + 1, False, 0.1, 0.00001, False),
            torch.batch_norm(image, c, c, None, None, True, 0.1, 0.00001, False)]

def products(x, y, image):
    xs, ys = x.view(4, 50, 301), y.view(4, 50, 301)
    return [torch.mm(x, y.t()), torch.mm(x.t(), y), torch.mv(x, y[0]), torch.bmm(xs, ys.transpose(1, 2)),
            torch.matmul(xs, y[:43].t()), torch.matmul(x.view(20, 10, 301), y[:7].t()), torch.addmm(x[0, :200], x, y.t()),
            torch.mm(x.double(), y.double().t()), torch.mm((x * 10).long(), (y * 10).long().t()),
            torch.mm(x.half(), y.half().t())]

def images(x, y, image):
    w = y.reshape(-1)
    few = image[:1]
    return [torch.conv2d(image, w[:1620].view(20, 9, 3, 3), None, [1, 1], [1, 1]),
            torch.conv2d(few, w[:1620].view(20, 9, 3, 3), w[:20], [1, 1], [1, 1]),
            torch.conv2d(few.repeat(1, 1, 3, 3), w[:1620].view(20, 9, 3, 3), w[:20], [2, 1], [2, 0], [1, 2]),
            torch.conv2d(few, w[:900].view(100, 9, 1, 1)), torch.conv2d(image, w[:81].view(9, 1, 3, 3), None, 1, 1, 1, 9),
            torch.conv2d(image, w[:540].view(20, 3, 3, 3)[:18], None, 1, 0, 1, 3),
            torch.conv_transpose2d(image, w[:720].view(9, 20, 2, 2), None, [2, 2]),
            torch.conv1d(x.view(50, 4, 301), w[:60].view(5, 4, 3)),
            torch.max_pool2d(image, [3, 3], [2, 2], [1, 1]), torch.max_pool2d_with_indices(image, [2, 3])[1],
            torch.avg_pool2d(image, [3, 3], [1, 1], [1, 1]), torch.adaptive_avg_pool2d(image, [5, 4]),
            torch.upsample_bilinear2d(image, [70, 51], False), torch.upsample_nearest2d(image, [70, 51]),
            torch.upsample_bicubic2d(image, [70, 51], True), torch.constant_pad_nd(image, [1, 2, 3, 4], 1.5),
            torch.reflection_pad2d(image, [1, 2, 3, 4])]

def picked(x, y, image):
    i = (x.abs() * 1000).long() % 200
    return [torch.embedding(x, i[:9]), torch.index_select(x, 1, i[0]), torch.index_select(x, 0, i[1]), torch.gather(x, 0, i),
            torch.gather(x.t(), 1, i.t()), x[i[2]], x[:, i[3]], x[i[4], i[5]], torch.take(x, i)]

def scattered(x, y, image):
    i = (x.abs() * 1000).long() % 200
    z = x.t().contiguous()
    few = (y[0].abs() * 1000).long() % 40
    w = y.reshape(-1)
    flat = (w.abs() * 100000).long() % 301
    bags = torch.arange(0, 60000, 7)
    return [torch.scatter_add(x, 0, i, y), torch.scatter_add(z, 1, i.t(), y.t()), torch.scatter_add(x.t(), 1, i.t(), y.t()),
            torch.scatter(x, 0, i, y), torch.scatter(z, 1, i.t(), 2.0), torch.scatter_reduce(x, 0, i, y, 'mean'),
            torch.scatter_reduce(z, 1, i.t(), y.t(), 'amax', include_self=False), torch.scatter_reduce(w, 0, flat, w, 'prod'),
            torch.index_add(x, 1, few, y), torch.index_add(z, 0, few, z), torch.index_copy(z, 0, few, z),
            torch.index_fill(x, 1, few, 2.0), torch.index_reduce(z, 0, few, z, 'amin'), torch.index_put(x, [i[:, 0]], y, True),
            torch.index_put(x, [i[0], few], w[:301], True), torch.index_put(image, [None, few % 9], image[:, few % 9]),
            torch.index_put(z, [few], z, True), torch.put(x, i, y, True), torch.masked_fill(x, y > 0, 1.0),
            torch.embedding_bag(x, i.view(-1), bags, False, 0)[0], torch.embedding_bag(x, i.view(-1), bags, False, 1)[0],
            torch.embedding_bag(x, i.view(-1), bags, False, 2)[3]]

def ordered(x, y, image):
    rounded = (x * 1000).round()
    found = torch.unique(rounded, True, True, True)
    kind = torch.unique(rounded.long(), dim=1, return_inverse=True)
    return [found[0], found[1], found[2], kind[0], kind[1], torch.searchsorted(torch.sort(x, 1)[0], y),
            torch.bucketize(x, torch.sort(y[0])[0]), torch.isin(rounded, rounded[0]), torch.kthvalue(x, 7, 1)[0],
            torch.mode(rounded, 1)[0], torch.cummax(x, 1)[1], torch.cumprod(x, 0), torch.logcumsumexp(x, 1),
            torch.quantile(x, 0.3, 1), torch.argsort(x, 0), torch.histc(x, 50), torch.bincount(rounded.abs().long().view(-1))]

def sampled(x, y, image):
    few = image[:, :, :25, :25].contiguous()
    columns = torch.im2col(image, [3, 3], [1, 1], [1, 1], [1, 1])
    grid = torch.stack([y[:, :301], x], 2).view(1, 200, 301, 2).repeat(9, 1, 1, 1)[:, :40, :50]
    pooled = torch.max_pool2d_with_indices(image, [2, 2])
    return [columns, torch.col2im(columns, [31, 29], [3, 3], [1, 1], [1, 1], [1, 1]),
            torch.grid_sampler(image, grid, 0, 0, False), torch.grid_sampler(image, grid, 1, 1, True),
            torch.grid_sampler(image, grid, 2, 2, False), torch.cdist(x, y), torch.cdist(x, y, 1.0), torch.pdist(x),
            torch.max_unpool2d(pooled[0], pooled[1], [31, 29]), torch.pixel_shuffle(image, 3),
            torch.ops.torchvision.roi_align(image, torch.cat([y[:, :1].abs().floor() % 9, y[:, 1:5].abs() * 9], 1), 0.5, 7, 7, 2, True)]

def matrices(x, y, image):
    a = image[:, :, :25, :25].reshape(81, 25, 25)
    p = torch.matmul(a, a.transpose(1, 2)) + torch.eye(25)
    q = torch.qr(a)
    s = torch.svd(a)
    h = torch.linalg_eigh(p)
    return [torch.linalg_solve(p, a), torch.inverse(p), torch.det(p), torch.logdet(p), torch.linalg_slogdet(p)[1],
            torch.linalg_cholesky(p), torch.cholesky_solve(a, torch.linalg_cholesky(p)), torch.cholesky_inverse(p),
            torch.linalg_solve_triangular(p, a, upper=True), q[0], q[1], s[0], s[1], s[2], h[0], h[1], torch.linalg_eigvals(a).abs(),
            torch.linalg_pinv(a), torch.linalg_lstsq(a, a)[0], torch.matrix_exp(a * 0.1), torch.linalg_matrix_power(a, 3),
            torch.linalg_ldl_factor(p)[0], torch.linalg_lu(p)[1]]

def waves(x, y, image):
    c = torch.fft_rfft2(image)
    return [torch.fft_fft(x).abs(), torch.fft_fft(x, dim=0).abs(), c.abs(), torch.fft_irfft2(c, [31, 29]),
            torch.fft_hfft(torch.complex(x, y)), torch.stft(x, 64, 16, return_complex=True).abs()]
";

const NAMES: [&str; 9] =
    ["chain", "chain_of_strides", "elements", "copies", "folds", "rows", "norms", "products", "images"];

const MORE: [&str; 6] = ["picked", "scattered", "ordered", "sampled", "matrices", "waves"];

/// Numbers of both signs without a pattern.
fn made(sizes: &[i64], seed: u64) -> IValue {
    let n: i64 = sizes.iter().product();
    let mut state = seed;
    let values = (0..n).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
    });
    IValue::Tensor(Tensor::from_vec(values.collect(), sizes).expect("small"))
}

fn inputs() -> [IValue; 3] {
    [made(&[200, 301], 1), made(&[200, 301], 2), made(&[9, 9, 31, 29], 3)]
}

fn entries(session: &Session) -> Vec<(&'static str, Entry)> {
    let program = session.compile_source(SOURCE, "threads.py").unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = |name| (name, program.entry(name).expect("defined"));
    NAMES.into_iter().chain(MORE).map(entry).collect()
}

/// Returns the bytes of all tensors of a result.
fn bits(value: &IValue) -> Vec<Vec<u8>> {
    let bytes = |t: &Tensor| {
        let t = if t.dtype() == DType::Bool { t.to_dtype(DType::U8).expect("small") } else { t.clone() };
        t.to_bytes().expect("plain")
    };
    match value {
        IValue::Tensor(t) => vec![bytes(t)],
        IValue::List(list) => list.to_vec().iter().flat_map(bits).collect(),
        other => panic!("{other:?}"),
    }
}

fn results(session: &Session) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let call = |(name, entry): (&'static str, Entry)| {
        (name, bits(&entry.call(&inputs(), &[]).unwrap_or_else(|e| panic!("{name}: {}", e.render()))))
    };
    entries(session).into_iter().map(call).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let session = Session::standard().expect("consistent");
    let alone = results(&session.with_threads(1));
    for threads in [2, 3, 8] {
        for ((name, want), (_, got)) in alone.iter().zip(results(&session.with_threads(threads))) {
            for (i, (want, got)) in want.iter().zip(&got).enumerate() {
                assert!(want == got, "{name}, result {i}, with {threads} threads");
            }
        }
    }
}

#[test]
fn sessions_with_different_thread_counts_run_concurrently() {
    let session = Session::standard().expect("consistent");
    let want = results(&session.with_threads(1))[..2].to_vec();
    std::thread::scope(|scope| {
        for threads in [1, 2, 5, 0] {
            let (session, want) = (session.with_threads(threads), &want);
            scope.spawn(move || {
                assert_eq!(session.threads(), threads);
                let entries = entries(&session);
                for _ in 0..5 {
                    for ((name, entry), (_, want)) in entries.iter().zip(want) {
                        assert!(bits(&entry.call(&inputs(), &[]).expect("runs")) == *want, "{name}");
                    }
                }
            });
        }
    });
}

#[test]
fn limits_hold_in_loops_of_several_threads() {
    let session = Session::builder().standard().threads(3).memory(1 << 20).build().expect("consistent");
    let program = session.compile_source("def f(x):\n    return (x + 1, x * 2)\n", "f.py").expect("correct");
    let error =
        program.entry("f").expect("defined").call(&[made(&[200_001], 1)], &[]).expect_err("too large");
    assert_eq!(error.fault, flambeau::Fault::Limit, "{}", error.render());
}
