"""Trains a tiny GPT-2 with Hugging Face's Trainer, as users do: continues from the last checkpoint
in the job's checkpoint directory. Downloads nothing."""

import argparse
import hashlib
import os
import time

import torch
import transformers

CHECKPOINTS = "/opt/ml/checkpoints"
SEQUENCE, VOCABULARY = 16, 64


class Counting(torch.utils.data.Dataset):
    """Has sequences that count upwards from different numbers."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(SEQUENCE) + index) % VOCABULARY
        return {"input_ids": tokens, "labels": tokens}


class ProgressPrinter(transformers.TrainerCallback):
    """Prints the progress of the training, and slows it down."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_train_begin(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **_: object,
    ) -> None:
        print(
            f"rank {os.environ['RANK']} of {args.world_size} begins at step {state.global_step}",
            flush=True,
        )

    def on_step_end(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **_: object,
    ) -> None:
        time.sleep(self.seconds)


def last_checkpoint() -> str | None:
    """Returns the last complete checkpoint: the trainer's state is written last."""
    whole = [
        name
        for name in os.listdir(CHECKPOINTS)
        if os.path.exists(f"{CHECKPOINTS}/{name}/trainer_state.json")
    ]
    return (
        f"{CHECKPOINTS}/{max(whole, key=lambda name: int(name.split('-')[1]))}" if whole else None
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--step-seconds", type=float, default=0.0)
    options = parser.parse_args()
    transformers.set_seed(7)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_layer=2, n_head=2, n_embd=32, n_positions=SEQUENCE, vocab_size=VOCABULARY
        )
    )
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            output_dir=CHECKPOINTS,
            max_steps=options.max_steps,
            save_steps=10,
            logging_steps=10,
            per_device_train_batch_size=8,
            learning_rate=5e-3,
            use_cpu=True,
            ddp_backend="gloo",
            report_to=[],
            disable_tqdm=True,
            seed=7,
        ),
        train_dataset=Counting(),
        callbacks=[ProgressPrinter(options.step_seconds)],
    )
    result = trainer.train(resume_from_checkpoint=last_checkpoint())
    weights = hashlib.sha256(
        b"".join(one.detach().numpy().tobytes() for one in model.parameters())
    ).hexdigest()
    print(
        f"rank {os.environ['RANK']} ends at step {trainer.state.global_step}, loss"
        f" {result.training_loss:.3f}, weights {weights}",
        flush=True,
    )
    trainer.save_model(os.environ["SM_MODEL_DIR"])


if __name__ == "__main__":
    main()
