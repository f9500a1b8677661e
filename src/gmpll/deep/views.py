"""Random views of a batch: noise for rows of a table, crops and distortions for images.

They work on whole batches of tensors, where these are, and draw from PyTorch's random numbers.
"""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["noisy_rows", "strong_images", "weak_images"]

#: Standard deviation of the noise of a table's rows, whose features are z-scored.
NOISE = 0.1
#: Smallest part of an image's area that a crop keeps, of weak and strong views.
MIN_AREA = 0.6
#: Change of contrast and brightness, and the share of the images that it happens to.
JITTER, JITTERED = 0.4, 0.8
#: Largest rotation in radians and largest shear of a strong view, and the largest side of what is
#: cut out of it, as part of the image's.
ROTATION, SHEAR, CUTOUT = 0.5, 0.3, 0.5


def noisy_rows(inputs: Tensor) -> Tensor:
    """Add normal noise to every feature."""
    return inputs + NOISE * torch.randn_like(inputs)


def weak_images(images: Tensor) -> Tensor:
    """Crop, flip and brighten images of shape (n, channels, height, width) at random."""
    return _jittered(_warped(images, rotation=0.0, shear=0.0))


def strong_images(images: Tensor) -> Tensor:
    """Crop, flip, rotate, shear and brighten images, and cut a square out of each."""
    return _cut_out(_jittered(_warped(images, rotation=ROTATION, shear=SHEAR)))


def _between(low: float, high: float, like: Tensor) -> Tensor:
    """Draw a number for every image."""
    return low + (high - low) * torch.rand(len(like), device=like.device, dtype=like.dtype)


def _warped(images: Tensor, rotation: float, shear: float) -> Tensor:
    scale = _between(MIN_AREA, 1.0, images).sqrt()
    room = 1.0 - scale
    flip = torch.where(_between(0.0, 1.0, images) < 0.5, -1.0, 1.0).to(images.dtype)
    angle = _between(-rotation, rotation, images)
    slant = _between(-shear, shear, images)
    cosine, sine = angle.cos(), angle.sin()
    across = torch.stack([flip * scale * cosine, scale * (slant - sine)], dim=1)
    down = torch.stack([flip * scale * sine, scale * cosine], dim=1)
    offset = torch.stack([room * _between(-1.0, 1.0, images), room * _between(-1.0, 1.0, images)])
    affine = torch.cat([torch.stack([across, down], dim=1), offset.T[:, :, None]], dim=2)
    grid = functional.affine_grid(affine, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _jittered(images: Tensor) -> Tensor:
    changed = (_between(0.0, 1.0, images) < JITTERED).to(images.dtype)
    contrast = 1.0 + changed * _between(-JITTER, JITTER, images)
    brightness = changed * _between(-JITTER, JITTER, images)
    return images * contrast[:, None, None, None] + brightness[:, None, None, None]


def _cut_out(images: Tensor) -> Tensor:
    height, width = images.shape[2:]
    side = _between(0.0, CUTOUT, images)

    def inside(n: int) -> Tensor:
        centre = _between(0.0, 1.0, images)[:, None]
        place = (torch.arange(n, device=images.device) + 0.5) / n
        return (place - centre).abs() < side[:, None] / 2

    hole = inside(height)[:, None, :, None] & inside(width)[:, None, None, :]
    return images.masked_fill(hole, 0.0)
