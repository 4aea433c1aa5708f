// Uploads a job's results: model.tar.gz (or, uncompressed, the files below model/) and
// output.tar.gz, merged from all hosts.
//
// Hosts after the first stage their files as plain tars next to the output; the first host merges
// them with its own and removes them. A model that is not kept is not merged: when the job failed,
// each host uploads its own output data (the first host's as output.tar.gz), and no model.
#include "agent/files/artifact.hpp"

#include <algorithm>

#include "agent/report/progress.hpp"
#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kModelPath = "/opt/ml/model";
constexpr const char* kOutputPath = "/opt/ml/output/data";
constexpr const char* kModelDirectory = "model";
constexpr const char* kOutputDirectory = "output/data";
constexpr std::string_view kModelTar = ".model.tar";
constexpr std::string_view kOutputTar = ".output.tar";

objects::Location output_location(const StepContext& context) {
  auto location = objects::parse_s3_uri(context.order.spec.output_uri);
  if (!location) return {};
  if (!location->key.empty() && !location->key.ends_with('/')) location->key += '/';
  location->key += context.order.job.name + "/output/";
  return std::move(*location);
}

std::string output_key_of(std::string model_key) {
  if (model_key.ends_with(kModelTar)) model_key.resize(model_key.size() - kModelTar.size());
  return model_key + std::string(kOutputTar);
}

// Uploads files without an archive: each file becomes an object.
class LooseFiles final : public TarWriter {
 public:
  LooseFiles(StepContext& context, objects::Location below, JobLog& job_log)
      : context_(context), below_(std::move(below)), job_log_(job_log), buffer_(kBufferBytes) {}

  Result<void> add(const TarEntry& entry, const Source& content) override {
    if (entry.type == TarEntry::Type::directory) return {};
    if (entry.type == TarEntry::Type::link) {
      job_log_.say(
          std::string(kModelPath) + "/" + entry.name +
          " was left out: it is a link, and without an archive there is nothing to keep one in");
      return {};
    }
    objects::PutOptions options;
    options.bytes = entry.bytes;
    const auto writer =
        TRY(context_.world.objects.put(below_.bucket, below_.key + entry.name, options));
    for (uint64_t left = entry.bytes; left > 0;) {
      const auto wanted = std::span(buffer_).first(std::min<uint64_t>(left, buffer_.size()));
      size_t got = TRY(content(wanted));
      if (got == 0) {  // the file became shorter
        std::fill(wanted.begin(), wanted.end(), '\0');
        got = wanted.size();
      }
      TRY(writer->write(wanted.first(got)));
      left -= got;
    }
    TRY(writer->commit());
    return {};
  }
  Result<void> finish() override { return {}; }

 private:
  static constexpr size_t kBufferBytes = 256 << 10;
  StepContext& context_;
  const objects::Location below_;
  JobLog& job_log_;
  std::vector<char> buffer_;
};

// Uploads each file of all hosts as an object below `to`.
Result<void> put_files(StepContext& context, const objects::Location& to,
                       const std::function<Result<void>(Artifact&)>& fill) {
  JobLog job_log([&](const std::string& text) { context.world.facts.say(text); });
  LooseFiles files(context, to, job_log);
  Artifact artifact(files, kModelPath, job_log, context.interruption);
  TRY(fill(artifact));
  job_log.finish();
  return files.finish();
}

// Streams one archive into an object: `fill` adds its content.
Result<void> put_archive(StepContext& context, const objects::Location& to, Compression compression,
                         const char* place, const std::function<Result<void>(Artifact&)>& fill) {
  objects::PutOptions options;
  options.content_type =
      compression == Compression::gzip ? "application/x-gzip" : "application/x-tar";
  const auto writer = TRY(context.world.objects.put(to.bucket, to.key, options));
  ProgressMeter progress("upload " + to.key.substr(to.key.rfind('/') + 1), context.world.send_now,
                         context.world.clock);
  const auto tar = TRY(write_tar(compression, [&](std::span<const char> bytes) -> Result<void> {
    TRY(context.interruption.check());
    TRY(writer->write(bytes));
    progress.moved(bytes.size());
    return {};
  }));
  JobLog job_log([&](const std::string& text) { context.world.facts.say(text); });
  Artifact artifact(*tar, place, job_log, context.interruption);
  TRY(fill(artifact));
  job_log.finish();
  TRY(tar->finish());
  TRY(writer->commit());
  progress.finish();
  return {};
}

// Adds another host's staged tar. A missing one is empty: a host without output data stages none.
Result<void> add_staged(StepContext& context, const std::string& bucket, const std::string& key,
                        const std::string& host, Artifact& artifact) {
  auto reader = context.world.objects.get(bucket, key);
  if (!reader && reader.error().kind == Kind::not_found) return {};
  if (!reader) return std::move(reader).error().in("reading the staged files of " + host);
  return artifact.add_tar([&](std::span<char> buffer) { return (*reader)->read(buffer); }, host)
      .in("merging the staged files of " + host);
}

void remove_staged(StepContext& context, const std::string& bucket, const std::string& model_key) {
  if (model_key.empty()) return;
  for (const auto& key : {model_key, output_key_of(model_key)}) {
    if (auto removed = context.world.objects.remove(bucket, key); !removed) {
      log(Level::warning, "agent", "cannot remove a staged object",
          {{"key", key}, {"error", removed.error().message}});
    }
  }
}

Result<void> put_own_output(StepContext& context, const Tree& tree,
                            const objects::Location& output) {
  if (!tree.has_files(kOutputDirectory)) return {};
  const std::string name =
      context.order.host == 0 ? "output.tar.gz" : "output-" + context.host_name() + ".tar.gz";
  const objects::Location to{output.bucket, output.key + name};
  TRY(put_archive(context, to, Compression::gzip, kOutputPath, [&](Artifact& artifact) {
    return artifact.add_tree(tree, kOutputDirectory, context.host_name());
  }));
  context.done.output_uri = "s3://" + to.bucket + "/" + to.key;
  return {};
}

// Uploads the first host's files merged with all staged files.
Result<void> put_union(StepContext& context, const Tree& tree, const objects::Location& output) {
  const auto staged = context.run.peers.value_or(std::vector<std::string>{});
  const auto fill = [&](const char* directory, bool of_model) {
    return [&context, &tree, &output, &staged, directory,
            of_model](Artifact& artifact) -> Result<void> {
      TRY(artifact.add_tree(tree, directory, context.host_name()));
      for (size_t i = 0; i < staged.size(); ++i) {
        if (staged[i].empty()) continue;
        const std::string host = domain::host_name(static_cast<domain::HostIndex>(i + 1));
        TRY(add_staged(context, output.bucket, of_model ? staged[i] : output_key_of(staged[i]),
                       host, artifact));
      }
      return {};
    };
  };
  const bool archive = context.order.spec.compress_model;
  const objects::Location model{output.bucket, output.key + (archive ? "model.tar.gz" : "model/")};
  if (archive) {
    TRY(put_archive(context, model, Compression::gzip, kModelPath, fill(kModelDirectory, true)));
  } else {
    TRY(put_files(context, model, fill(kModelDirectory, true)));
  }
  context.done.model_uri = "s3://" + model.bucket + "/" + model.key;

  bool any_output = tree.has_files(kOutputDirectory);
  for (const auto& key : staged) {
    any_output = any_output ||
                 (!key.empty() && context.world.objects.head(output.bucket, output_key_of(key)));
  }
  if (any_output) {
    const objects::Location data{output.bucket, output.key + "output.tar.gz"};
    TRY(put_archive(context, data, Compression::gzip, kOutputPath, fill(kOutputDirectory, false)));
    context.done.output_uri = "s3://" + data.bucket + "/" + data.key;
  }
  for (const auto& key : staged) remove_staged(context, output.bucket, key);
  return {};
}

Result<void> put_staged(StepContext& context, const Tree& tree, const objects::Location& output) {
  const bool has_output = tree.has_files(kOutputDirectory);
  if (!has_output && !tree.has_files(kModelDirectory)) return {};
  const std::string model_key = output.key + "staged/" + context.order.attempt.text() + "/" +
                                context.host_name() + std::string(kModelTar);
  TRY(put_archive(context, {output.bucket, model_key}, Compression::none, kModelPath,
                  [&](Artifact& artifact) {
                    return artifact.add_tree(tree, kModelDirectory, context.host_name());
                  }));
  if (has_output) {
    TRY(put_archive(context, {output.bucket, output_key_of(model_key)}, Compression::none,
                    kOutputPath, [&](Artifact& artifact) {
                      return artifact.add_tree(tree, kOutputDirectory, context.host_name());
                    }));
  }
  context.done.staged_model = model_key;
  return {};
}

// A directory that the job replaced by a link is skipped, which the job's log reports.
void say_what_was_replaced(StepContext& context) {
  for (const auto& [directory, place] :
       {std::pair(kModelDirectory, kModelPath), {kOutputDirectory, kOutputPath}})
    if (const auto below = context.ml_tree->below(directory);
        !below && below.error().kind == Kind::invalid)
      context.world.facts.say(std::string(place) + " is not kept: " + below.error().message);
}

std::optional<Failure> upload(
    StepContext& context,
    const std::function<Result<void>(const Tree&, const objects::Location&)>& work) {
  say_what_was_replaced(context);
  auto done = with_store(context, "artifacts", [&]() -> Result<void> {
    return work(*context.ml_tree, output_location(context));
  });
  if (!done)
    return failure_of(done.error(), "Artifact upload failed: " + context.order.spec.output_uri);
  return {};
}

}  // namespace

std::optional<Failure> stage_artifacts(StepContext& context) {
  if (context.order.spec.contract == domain::Contract::plain) return {};
  if (context.order.host == 0 || !context.run.keeps_model()) return {};
  return upload(context, [&](const Tree& tree, const objects::Location& output) {
    return put_staged(context, tree, output);
  });
}

std::optional<Failure> upload_artifacts(StepContext& context) {
  if (context.order.spec.contract == domain::Contract::plain) return {};
  if (context.run.keeps_model()) {
    if (context.order.host != 0) return {};
    return upload(context, [&](const Tree& tree, const objects::Location& output) {
      return put_union(context, tree, output);
    });
  }
  // After an interruption nothing is uploaded: the next attempt starts from checkpoints and makes
  // the results again.
  if (context.run.stop == domain::StopCause::interrupted) {
    if (context.run.staged_model.empty()) return {};
    return upload(context, [&](const Tree&, const objects::Location& output) -> Result<void> {
      remove_staged(context, output.bucket, context.run.staged_model);
      return {};
    });
  }
  if (context.run.staged_model.empty() && !context.ml_tree->has_files(kOutputDirectory)) {
    say_what_was_replaced(context);
    return {};
  }
  return upload(context, [&](const Tree& below, const objects::Location& output) -> Result<void> {
    remove_staged(context, output.bucket, context.run.staged_model);
    return put_own_output(context, below, output);
  });
}

}  // namespace trainyard::agent
