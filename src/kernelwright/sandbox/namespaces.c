/* Opens a closed room and starts the launcher in it: what bubblewrap does for us, for machines that have no bubblewrap.
 *
 * It speaks those words of bubblewrap's that we use, with their meaning and in their order; what it always does is left
 * out: new mount, pid, network, ipc, uts and cgroup namespaces (and, for a plain user, the user namespace that gives the
 * right to make them), a new session, no capabilities, no new privileges, the program as process 1, its end with ours.
 *
 * Root makes the room as root, so that its mounts and its network belong to nobody inside, and only then becomes the job's
 * user, in a user namespace of its own (which gives the job a count of processes of its own). No folder has to be opened by
 * the job's user, and machines that keep user namespaces from plain users do not matter.
 *
 * Nothing is mounted or made through a symbolic link: every path inside is walked part by part.
 *
 * namespaces [--uid U --gid G [--group G]... [--share-user]] [--hostname NAME] [--seccomp FD]
 *            [--ro-bind S D | --ro-bind-try S D | --bind S D | --dev-bind S D | --symlink TEXT D | --proc D | --dev D |
 *             [--size BYTES] --tmpfs D | --remount-ro D]... -- PROGRAM ARGUMENT...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM "/tmp" /* where the new root is built; what the machine has there is opened before it is covered */

enum { MANY = 256, PATH = 4096 };
enum kind { BIND, WRITABLE, DEVICE, SYMLINK, PROC, DEV, TMPFS, READ_ONLY };

static struct step {
    enum kind kind;
    const char *source, *inside, *size;
    int fd; /* the source, opened while the machine's root was still ours */
    bool may_lack;
} steps[MANY];

static struct {
    uid_t uid;
    gid_t gid, groups[MANY];
    bool root, share_user;
    const char *hostname;
    int step_count, group_count, seccomp;
    char **program;
} room = {.seccomp = -1};

static void die(const char *what) {
    fprintf(stderr, "room: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* ---- the words ---- */

static const struct {
    const char *word;
    enum kind kind;
    bool has_source, may_lack;
} words[] = {
    {"--ro-bind", BIND, true, false},   {"--ro-bind-try", BIND, true, true}, {"--bind", WRITABLE, true, false},
    {"--dev-bind", DEVICE, true, false}, {"--symlink", SYMLINK, true, false}, {"--proc", PROC, false, false},
    {"--dev", DEV, false, false},       {"--tmpfs", TMPFS, false, false},    {"--remount-ro", READ_ONLY, false, false},
};

static char **wanted(char **word, int count) {
    for (int i = 1; i <= count; i++)
        if (!word[i]) errno = EINVAL, die(word[0]);
    return word + count;
}

static char **read_step(char **word, const char **size) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(*word, words[i].word)) continue;
        if (room.step_count == MANY) errno = E2BIG, die(*word);
        char **last = wanted(word, words[i].has_source ? 2 : 1);
        steps[room.step_count++] = (struct step){words[i].kind, words[i].has_source ? word[1] : NULL, *last, *size, -1,
                                                 words[i].may_lack};
        *size = NULL;
        return last;
    }
    errno = EINVAL, die(*word);
    return NULL;
}

static void read_words(char **word) {
    const char *size = NULL;
    for (; *word && strcmp(*word, "--"); word++) {
        if (!strcmp(*word, "--uid")) word = wanted(word, 1), room.uid = (uid_t)atol(*word);
        else if (!strcmp(*word, "--gid")) word = wanted(word, 1), room.gid = (gid_t)atol(*word);
        else if (!strcmp(*word, "--group") && room.group_count < MANY)
            word = wanted(word, 1), room.groups[room.group_count++] = (gid_t)atol(*word);
        else if (!strcmp(*word, "--share-user")) room.share_user = true;
        else if (!strcmp(*word, "--hostname")) word = wanted(word, 1), room.hostname = *word;
        else if (!strcmp(*word, "--seccomp")) word = wanted(word, 1), room.seccomp = atoi(*word);
        else if (!strcmp(*word, "--size")) word = wanted(word, 1), size = *word;
        else word = read_step(word, &size);
    }
    room.program = *word ? word + 1 : word;
    room.root = geteuid() == 0;
    if (!*room.program || room.root != (room.uid && room.gid)) errno = EINVAL, die("a program, and as root a user to become");
    if (!room.root) room.uid = geteuid(), room.gid = getegid();
}

/* ---- mounts ---- */

/* The path, in this process's root, of `inside` in the room; its parts are made where they are missing, the last one as a
 * folder or as an empty file. The result is the caller's until the next call. */
static const char *place(const char *inside, bool folder) {
    static char found[PATH];
    char text[PATH], link[64];
    snprintf(text, sizeof text, "%s", inside);
    int here = open(ROOM, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *rest = NULL;
    for (char *part = strtok_r(text, "/", &rest), *next; part && here >= 0; part = next) {
        next = strtok_r(NULL, "/", &rest);
        if (!strcmp(part, "..")) errno = EINVAL, die(inside);
        bool deeper = next || folder;
        if (deeper) mkdirat(here, part, 0755);
        else close(openat(here, part, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644));
        int there = openat(here, part, O_PATH | O_NOFOLLOW | O_CLOEXEC | (deeper ? O_DIRECTORY : 0));
        if (there < 0) die(inside);
        close(here);
        here = there;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", here);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (here < 0 || length < 0) die(inside);
    found[length] = 0;
    close(here);
    return found;
}

/* A mount's own flags have to stay: a user namespace may not take off what the machine's root put on. */
static unsigned long flags_of(const char *path) {
    struct statvfs fs;
    if (statvfs(path, &fs)) return 0;
    unsigned long same = fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME);
    return same | (fs.f_flag & ST_RELATIME ? MS_RELATIME : 0);
}

static void remount(const char *path, unsigned long flags) {
    if (mount("none", path, NULL, MS_REMOUNT | MS_BIND | flags_of(path) | flags, NULL)) die(path);
}

static void unescape(char *text) {
    char *to = text;
    for (char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3])
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0'), from += 4;
        else *to = *from++;
    }
    *to = 0;
}

/* The mount at `path` and those below it, which came along from the machine, get `flags` too. */
static void restrict_tree(const char *path, unsigned long flags) {
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, at[PATH];
    size_t room_for = 0, length = strlen(path);
    if (!table) die("/proc/self/mountinfo");
    while (getline(&line, &room_for, table) > 0) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1) continue;
        unescape(at);
        bool below = !strncmp(at, path, length) && at[length] == '/';
        if (strcmp(at, path) && !below) continue;
        struct stat status;
        if (below && stat(at, &status)) continue; /* what cannot be looked at from here cannot be inside either */
        remount(at, flags);
    }
    free(line);
    fclose(table);
}

static void show(int source, const char *inside, unsigned long flags) {
    char from[64], at[PATH];
    struct stat status;
    snprintf(from, sizeof from, "/proc/self/fd/%d", source);
    if (fstat(source, &status)) die(inside);
    snprintf(at, sizeof at, "%s", place(inside, S_ISDIR(status.st_mode)));
    if (mount(from, at, NULL, MS_BIND | MS_REC, NULL)) die(inside);
    restrict_tree(at, flags);
}

static void bind_path(const char *source, const char *inside, unsigned long flags) {
    int fd = open(source, O_PATH | O_CLOEXEC);
    if (fd < 0) return; /* a machine's /dev need not have everything */
    show(fd, inside, flags);
    close(fd);
}

static void link_to(const char *text, const char *inside) {
    char above[PATH], *slash;
    snprintf(above, sizeof above, "%s", inside);
    if (!(slash = strrchr(above, '/'))) errno = EINVAL, die(inside);
    *slash = 0;
    int folder = open(place(above, true), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || symlinkat(text, folder, slash + 1)) die(inside);
    close(folder);
}

static void mount_tmpfs(const char *inside, const char *mode, const char *size) {
    char options[128];
    snprintf(options, sizeof options, "mode=%s%s%s", mode, size ? ",size=" : "", size ? size : "");
    if (mount("tmpfs", place(inside, true), "tmpfs", MS_NOSUID | MS_NODEV, options)) die(inside);
}

static void mount_dev(const char *inside) {
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};
    char path[PATH], from[64];
    if (mount("tmpfs", place(inside, true), "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=1m")) die(inside);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        snprintf(path, sizeof path, "%s/%s", inside, nodes[i]);
        snprintf(from, sizeof from, "/dev/%s", nodes[i]);
        bind_path(from, path, MS_NOSUID | MS_NOEXEC);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "%s/%s", inside, links[i][1]);
        link_to(links[i][0], path);
    }
    snprintf(path, sizeof path, "%s/pts", inside);
    if (mount("devpts", place(path, true), "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")) die(path);
}

static void take(const struct step *step) {
    unsigned long closed = MS_NOSUID | MS_NODEV;
    if (step->may_lack && step->fd < 0) return;
    switch (step->kind) {
    case BIND: show(step->fd, step->inside, closed | MS_RDONLY); break;
    case WRITABLE: show(step->fd, step->inside, closed); break;
    case DEVICE: show(step->fd, step->inside, MS_NOSUID | MS_NOEXEC); break;
    case SYMLINK: link_to(step->source, step->inside); break;
    case PROC:
        if (mount("proc", place(step->inside, true), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) die("a /proc of its own");
        break;
    case DEV: mount_dev(step->inside); break;
    case TMPFS: mount_tmpfs(step->inside, "1777", step->size); break;
    case READ_ONLY: remount(place(step->inside, true), MS_RDONLY); break;
    }
}

/* The machine's root is gone afterwards: not hidden below, but in no mount that this namespace still has. */
static void build(void) {
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("private mounts");
    for (int i = 0; i < room.step_count; i++) {
        struct step *step = &steps[i];
        if (step->kind > DEVICE) continue;
        step->fd = open(step->source, O_PATH | O_CLOEXEC);
        if (step->fd < 0 && !(step->may_lack && errno == ENOENT)) die(step->source);
    }
    if (mount("tmpfs", ROOM, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")) die("a root of its own");
    for (int i = 0; i < room.step_count; i++) take(&steps[i]);
    for (int i = 0; i < room.step_count; i++)
        if (steps[i].fd >= 0) close(steps[i].fd);
    if (chdir(ROOM) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/")) die("pivot_root");
}

/* Programs may speak with themselves over 127.0.0.1, as with a library of messages between processes. */
static void loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return; /* a kernel without IPv4 */
    if (ioctl(fd, SIOCSIFFLAGS, &request)) die("the loopback device");
    close(fd);
}

/* ---- who the job is ---- */

static void write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) die(path);
    close(fd);
}

/* The user stays who it is, in a user namespace that knows no other. */
static void map_ids(void) {
    char text[64];
    write_text("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1\n", room.uid, room.uid);
    write_text("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1\n", room.gid, room.gid);
    write_text("/proc/self/gid_map", text);
}

static void set_capabilities(__u32 low, __u32 high) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{low, low, 0}, {high, high, 0}};
    if (syscall(SYS_capset, &header, data)) die("capabilities");
}

static void become_user(void) {
    if (setgroups((size_t)room.group_count, room.groups) || prctl(PR_SET_KEEPCAPS, 1)) die("groups");
    if (setresgid(room.gid, room.gid, room.gid) || setresuid(room.uid, room.uid, room.uid)) die("user id");
    set_capabilities(1u << CAP_SYS_ADMIN | 1u << CAP_SETPCAP, 0);
    if (room.share_user) return;
    prctl(PR_SET_DUMPABLE, 1); /* or /proc/self belongs to root */
    if (unshare(CLONE_NEWUSER)) die("a user namespace of its own");
    map_ids();
}

static void give_up_rights(void) {
    for (int i = 0; i < 64; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) && errno != EINVAL) die("the bounding set");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    set_capabilities(0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL)) die("prctl");
}

static void filter_calls(void) {
    static struct sock_filter steps_of[1024];
    if (room.seccomp < 0) return;
    ssize_t length = pread(room.seccomp, steps_of, sizeof steps_of, 0);
    if (length <= 0) die("the list of refused system calls");
    struct sock_fprog program = {(unsigned short)((size_t)length / sizeof *steps_of), steps_of};
    close(room.seccomp);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
}

static void open_room(void) {
    setsid();
    build();
    loopback_up();
    if (room.hostname && sethostname(room.hostname, strlen(room.hostname))) die("the host name");
    if (room.root) become_user();
    give_up_rights();
    filter_calls();
    execv(room.program[0], room.program);
    die(room.program[0]);
}

int main(int argc, char **argv) {
    (void)argc;
    read_words(argv + 1);
    umask(0);
    int spaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (unshare(spaces | (room.root ? 0 : CLONE_NEWUSER))) die("namespaces of its own");
    if (!room.root) map_ids();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) die("prctl");
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) open_room();
    if (syscall(SYS_close_range, 0, ~0U, 0))
        for (int fd = 0; fd < 1024; fd++) close(fd);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
