"""A byte-level GPT on the Python standard library's own sources: all that a user writes."""
import sysconfig
from pathlib import Path
import torch
from torch import nn
from torch.nn import functional as F
from parcae_agent import AdamW, Layer, Training, warmup

class Embed(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.token, self.position = nn.Embedding(256, width), nn.Embedding(context, width)
    def forward(self, ids):
        return self.token(ids) + self.position.weight[: ids.shape[1]]

class Block(nn.TransformerEncoderLayer):
    def __init__(self, width, heads):
        super().__init__(width, heads, 4 * width, 0.05, F.gelu, batch_first=True, norm_first=True)
    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return super().forward(x, src_mask=mask, is_causal=True)

class Text(torch.utils.data.Dataset):
    def __init__(self, files, context):
        sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:files]
        self.bytes = bytearray(b"".join(path.read_bytes() for path in sources))
        self.context = context
    def __len__(self):
        return (len(self.bytes) - 1) // self.context
    def __getitem__(self, i):
        piece = torch.tensor(self.bytes[i * self.context : (i + 1) * self.context + 1])
        return piece[:-1].long(), piece[1:].long()

def gpt(layers=6, width=96, heads=4, context=64, batch=32, micro_batch=4, lr=3e-3, steps=100_000):
    blocks = [Layer(f"block{i}", lambda: Block(width, heads)) for i in range(layers)]
    head = Layer("head", lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 256)))
    return Training(layers=[Layer("embed", lambda: Embed(width, context)), *blocks, head],
                    loss=lambda out, target: F.cross_entropy(out.flatten(0, 1), target.flatten()),
                    data=Text(100, context), optimizer=AdamW(lr=warmup(lr, warmup=50)),
                    global_batch=batch, micro_batch=micro_batch, steps=steps, clip_norm=1.0)
