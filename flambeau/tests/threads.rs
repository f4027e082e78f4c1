//! Results do not depend on the number of threads: whole programs over every family of kernels that divides its work,
//! at sizes that make parts of unequal length, bit for bit; and sessions with different numbers at work at once.

use flambeau::tensor::DType;
use flambeau::{Entry, IValue, Session, Tensor};

/// Functions of a matrix, another of its sizes, and a batch of images.
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
";

const NAMES: [&str; 9] =
    ["chain", "chain_of_strides", "elements", "copies", "folds", "rows", "norms", "products", "images"];

/// Numbers of both signs, of no pattern.
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
    NAMES.into_iter().chain(["picked"]).map(entry).collect()
}

/// The bytes of all tensors of a result.
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
fn sessions_with_different_numbers_work_at_once() {
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
