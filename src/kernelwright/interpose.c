/* The interposed compiler: stands first on PATH under the names of the real compilers.
 *
 * It records every command, asks the real compiler which files the command reads (in the first build, and later of
 * commands that the plan does not know: a time stamp or a temporary name stands in their words), keeps the objects of the
 * first build as they come from the compiler, copies one of these where the plan says that nothing the command reads has
 * changed, and appends the candidate's compile arguments to the commands that read a region. Everything else it hands on
 * unchanged.
 *
 * Environment: KW_PLAN (folder, read-only: `plan`, `regions`, `flags`, objects), KW_RECORD (folder, writable: `commands`,
 * dependency lists, objects), KW_DEPENDS=1 to write the latter two, KW_REPO (where this build sees the repository: without a
 * sandbox each workspace lies elsewhere). The plan's keys are made by `key` below and by `command_key` in interpose.py:
 * both must agree.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *SOURCES[] = {".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".hip", NULL};

static void die(const char *what, const char *name) {
  fprintf(stderr, "kernelwright: interposed compiler: %s %s: %s\n", what, name, strerror(errno));
  exit(126);
}

static uint64_t mix(uint64_t hash, const char *text) { /* FNV-1a, the terminating zero included */
  do {
    hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  } while (*text++);
  return hash;
}

/* The text as a build at /kw/repo would have it, so that a command is the same one in every workspace. */
static const char *placed(const char *text) {
  const char *repo = getenv("KW_REPO"), *found;
  char *out = NULL;
  size_t size = 0;
  if (!repo || !*repo || !strstr(text, repo)) return text;
  FILE *memory = open_memstream(&out, &size);
  for (; (found = strstr(text, repo)); text = found + strlen(repo)) {
    fwrite(text, 1, found - text, memory);
    fputs("/kw/repo", memory);
  }
  fputs(text, memory);
  fclose(memory);
  return out;
}

static uint64_t key(const char *cwd, char **argv) {
  uint64_t hash = mix(14695981039346656037u, placed(cwd));
  for (; *argv; argv++) hash = mix(hash, placed(*argv));
  return hash;
}

static int is_source(const char *word) {
  const char *dot = strrchr(word, '.');
  if (word[0] == '-' || !dot) return 0;
  for (const char **suffix = SOURCES; *suffix; suffix++)
    if (!strcmp(dot, *suffix)) return 1;
  return 0;
}

static int same_file(const char *left, const char *right) {
  struct stat a, b;
  return !stat(left, &a) && !stat(right, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Finds the compiler that this one stands before, and takes our folder off PATH, so that what the compiler calls
 * itself (nvcc calls g++) is not recorded twice. */
static char *real_compiler(const char *name) {
  char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
  char *rest = calloc(1, strlen(path) + 2), *found = NULL, *save = NULL;
  for (char *folder = strtok_r(path, ":", &save); folder; folder = strtok_r(NULL, ":", &save)) {
    char *here;
    if (asprintf(&here, "%s/%s", folder, name) < 0) die("out of memory for", name);
    if (same_file(here, "/proc/self/exe")) continue;
    if (*rest) strcat(rest, ":");
    strcat(rest, folder);
    if (!found && !access(here, X_OK)) found = here;
  }
  setenv("PATH", rest, 1);
  return found;
}

/* What is asked with `stdout_to` is asked quietly, and eats nothing of the command's own input. */
static int wait_for(char *program, char **argv, const char *stdout_to) {
  pid_t child = fork();
  if (child < 0) die("cannot fork for", program);
  if (!child) {
    if (stdout_to) {
      int out = open(stdout_to, O_WRONLY | O_CREAT | O_TRUNC, 0644), null = open("/dev/null", O_RDWR);
      if (out < 0 || null < 0) _exit(126);
      dup2(null, 0);
      dup2(out, 1);
      dup2(null, 2);
    }
    execv(program, argv);
    _exit(127);
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) die("lost", program);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int copy(const char *from, const char *to) {
  int in = open(from, O_RDONLY);
  if (in < 0) return 0;
  unlink(to); /* never through a link that the tree may hold */
  int out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (out < 0) die("cannot write", to);
  char buffer[1 << 16];
  for (ssize_t n; (n = read(in, buffer, sizeof buffer)) != 0;)
    if (n < 0 || write(out, buffer, n) != n) die("cannot copy to", to);
  close(in);
  close(out);
  return 1;
}

/* The options that name a file, and how their value may be joined: `-ofile` as gcc and clang take it, `-o=file` as nvcc
 * does, `--output=file` as all do. `_value` in interpose.py reads them alike. */
static const char *OUTPUT[] = {"-o", "--output", "--output-file", NULL};
static const char *LISTING[] = {"-MF", "--dependency-output", NULL};
static const char *LISTS[] = {"-MD", "-MMD", "--generate-dependencies-with-compile",
                              "--generate-nonsystem-dependencies-with-compile", NULL};
static const char *TARGET[] = {"-MT", "-MQ", "--dependency-target-name", NULL};

/* The value that a word holds of one of these options; "" where the next word is the value, NULL where it is another. */
static const char *joined(const char *word, const char **options, int nvcc) {
  for (; *options; options++) {
    size_t length = strlen(*options);
    if (strncmp(word, *options, length)) continue;
    if (!word[length]) return "";
    if (nvcc || (*options)[1] == '-') {
      if (word[length] == '=') return word + length + 1;
    } else {
      return word + length;
    }
  }
  return NULL;
}

static int is_nvcc(char **argv) {
  const char *slash = strrchr(argv[0], '/');
  return !strcmp(slash ? slash + 1 : argv[0], "nvcc");
}

static const char *value_of(char **argv, const char **options) { /* the last one counts, as for the compilers */
  const char *found = NULL;
  int nvcc = is_nvcc(argv);
  for (; *++argv;) {
    const char *value = joined(*argv, options, nvcc);
    if (value && !*value && argv[1]) value = *++argv;
    if (value) found = value;
  }
  return found;
}

/* What the plan says of this command: 'r' reuse the object, 'a' append the flags, 'c' compile it as asked; '?' where it
 * does not know the command, 0 where there is no plan. */
static char planned(const char *plan, uint64_t wanted) {
  char path[PATH_MAX], action;
  snprintf(path, sizeof path, "%s/plan", plan);
  FILE *file = fopen(path, "r");
  unsigned long long hash;
  char result = 0, unknown = file ? '?' : 0;
  while (file && !result && fscanf(file, "%llx %c", &hash, &action) == 2)
    if (hash == wanted) result = action;
  if (file) fclose(file);
  return result ? result : unknown;
}

static int has(char **argv, const char **words) {
  for (; *++argv;)
    for (const char **word = words; *word; word++)
      if (!strcmp(*argv, *word)) return 1;
  return 0;
}

/* Copies the object and the dependency list of a command that compiles, from where it leaves them to `KEY.o` and `KEY.d`
 * in a folder of ours, or back. Returns 0 where there is no such object. */
static int carry(const char *folder, uint64_t hash, char **argv, int back) {
  static const char *compiles[] = {"-c", "-dc", "--compile", "--device-c", NULL};
  char ours[PATH_MAX], listing[PATH_MAX + 2];
  const char *output = value_of(argv, OUTPUT), *named = value_of(argv, LISTING);
  if (!output || !has(argv, compiles)) return 0;
  snprintf(ours, sizeof ours, "%s/%016llx.o", folder, (unsigned long long)hash);
  if (!copy(back ? ours : output, back ? output : ours)) return 0;
  if (!has(argv, LISTS)) return 1;
  snprintf(listing, PATH_MAX, "%s", named ? named : output);
  char *slash = strrchr(listing, '/'), *dot = strrchr(slash ? slash : listing, '.');
  if (!named) strcpy(dot ? dot : listing + strlen(listing), ".d");
  snprintf(ours, sizeof ours, "%s/%016llx.d", folder, (unsigned long long)hash);
  copy(back ? ours : listing, back ? listing : ours);
  return 1;
}

static char **with_flags(const char *plan, char **argv, int argc) {
  char path[PATH_MAX], line[4096];
  snprintf(path, sizeof path, "%s/flags", plan);
  FILE *file = fopen(path, "r");
  if (!file) return argv;
  char **longer = calloc(argc + 1026, sizeof *longer);
  memcpy(longer, argv, argc * sizeof *longer);
  while (fgets(line, sizeof line, file) && argc < 1024) {
    line[strcspn(line, "\n")] = 0;
    if (*line) longer[argc++] = strdup(line);
  }
  fclose(file);
  return longer;
}

/* The same command, asked only which files it reads. */
static char **depends_command(char **argv, int argc) {
  static const char *alone[] = {"-c", "-dc", "-S", "-E", "-MP", "--compile", "--device-c",
                                "--generate-dependency-targets", NULL};
  const char **valued[] = {OUTPUT, LISTING, TARGET};
  char **asked = calloc(argc + 2, sizeof *asked);
  int n = 0, nvcc = is_nvcc(argv);
  for (int i = 0; i < argc; i++) {
    int drop = !strncmp(argv[i], "-Wp,-M", 6);
    const char *value = NULL;
    for (const char **option = alone; *option; option++) drop |= !strcmp(argv[i], *option);
    for (const char **option = LISTS; *option; option++) drop |= !strcmp(argv[i], *option);
    for (int of = 0; of < 3 && i; of++)
      if (!value) value = joined(argv[i], valued[of], nvcc);
    if (value && !*value) i++;
    if (!drop && !value) asked[n++] = argv[i];
  }
  asked[n] = "-M";
  return asked;
}

/* Whether the plan's list of files with a region holds this one, under whatever name. */
static int is_region(const char *path, const char *plan) {
  char list[PATH_MAX], line[PATH_MAX], whole[2 * PATH_MAX];
  const char *repo = getenv("KW_REPO");
  snprintf(list, sizeof list, "%s/regions", plan);
  FILE *file = fopen(list, "r");
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    snprintf(whole, sizeof whole, "%s/%s", repo ? repo : "", line);
    found = same_file(path, whole);
  }
  if (file) fclose(file);
  return found;
}

/* Whether a dependency list (make's syntax) names a file with a region. */
static int reads_region(const char *list, const char *plan) {
  char word[PATH_MAX];
  size_t n = 0;
  int found = 0, c, next;
  FILE *file = fopen(list, "r");
  while (file && !found && n < sizeof word - 1) {
    c = fgetc(file);
    if (c == '\\' || c == '$') {
      next = fgetc(file);
      if (c == '\\' && next == '\n') {
        c = ' ';
      } else if (next == ' ' || next == '#' || (c == '$' && next == '$')) {
        word[n++] = next;
        continue;
      } else {
        ungetc(next, file);
      }
    }
    if (c != ' ' && c != '\n' && c != '\t' && c != EOF) {
      word[n++] = c;
      continue;
    }
    word[n] = 0;
    found = n && is_region(word, plan);
    n = 0;
    if (c == EOF) break;
  }
  if (file) fclose(file);
  return found;
}

static void record(const char *folder, int asked, int status, char action, const char *cwd, const char *depends,
                   char **argv) {
  char path[PATH_MAX], *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  int argc = 0;
  while (argv[argc]) argc++;
  fprintf(memory, "%d%c%d%c%d%c%c%c%s%c%s%c", argc, 0, asked, 0, status, 0, action, 0, cwd, 0, depends, 0);
  for (; *argv; argv++) fwrite(*argv, 1, strlen(*argv) + 1, memory);
  fclose(memory);
  snprintf(path, sizeof path, "%s/commands", folder);
  int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644); /* one write with O_APPEND: records never mix */
  if (log < 0 || write(log, text, size) != (ssize_t)size) die("cannot record in", path);
  close(log);
}

int main(int argc, char **argv) {
  const char *plan = getenv("KW_PLAN"), *folder = getenv("KW_RECORD");
  char cwd[PATH_MAX], depends[PATH_MAX] = "", *program = real_compiler(basename(strdup(argv[0])));
  if (!program) {
    fprintf(stderr, "%s: command not found\n", argv[0]);
    return 127;
  }
  if (!folder || !getcwd(cwd, sizeof cwd)) die("no place to record", argv[0]);
  argv[0] = program;
  uint64_t hash = key(cwd, argv);
  char action = plan ? planned(plan, hash) : 0;
  if (action == 'r' && carry(plan, hash, argv, 1)) {
    record(folder, argc, 0, 'r', cwd, "", argv);
    return 0;
  }
  int sources = 0;
  for (char **word = argv + 1; *word; word++) sources += is_source(*word);
  if (sources && (action == '?' || getenv("KW_DEPENDS"))) {
    /* Asked before it is compiled: whatever options we fail to know, the object is written last. */
    char to[PATH_MAX + 32];
    snprintf(depends, sizeof depends, "%016llx.deps", (unsigned long long)hash);
    snprintf(to, sizeof to, "%s/%s", folder, depends);
    if (wait_for(program, depends_command(argv, argc), to)) depends[0] = 0;
    if (depends[0] && action == '?' && reads_region(to, plan)) action = 'u';
  }
  int appends = action == 'a' || action == 'u';
  char **command = appends ? with_flags(plan, argv, argc) : argv;
  int status = wait_for(program, command, NULL);
  if (!status && sources && getenv("KW_DEPENDS")) carry(folder, hash, argv, 0);
  record(folder, argc, status, appends ? action : 'c', cwd, depends, command);
  return status;
}
