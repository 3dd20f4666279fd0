"""A byte-level GPT on the Python standard library's own sources: all that a user writes."""
import sysconfig
from pathlib import Path
from torch import nn, tensor, utils
from torch.nn import functional as F
from parcae_agent import AdamW, Layer, Training, warmup

class Embed(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.token, self.position = nn.Embedding(256, width), nn.Embedding(context, width)
    def forward(self, text):
        return self.token(text.int()) + self.position.weight[: text.shape[1]]

class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.out(mixed))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))

def text(context):
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:100]
    content = tensor(bytearray(b"".join(path.read_bytes() for path in sources)))
    windows = content.unfold(0, context + 1, context)
    return utils.data.TensorDataset(windows[:, :-1], windows[:, 1:])

def gpt(layers=6, width=64, heads=4, context=64, batch=32, micro_batch=4, lr=3e-3, steps=100_000):
    blocks = [Layer(f"block{i}", lambda: Block(width, heads, 0.05)) for i in range(layers)]
    embed, head = lambda: Embed(width, context), lambda: nn.Linear(width, 256)
    return Training(layers=[Layer("embed", embed), *blocks, Layer("head", head)],
                    loss=lambda out, to: F.cross_entropy(out.flatten(0, 1), to.flatten().long()),
                    data=text(context), optimizer=AdamW(lr=warmup(lr, warmup=50)), steps=steps,
                    global_batch=batch, micro_batch=micro_batch, clip_norm=1.0)
