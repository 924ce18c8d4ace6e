/* Pictures, by gnuplot. */
#include "repro.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SVG_MAX (1 << 20)

/* Seen well on light and on dark. */
static const char *const colours[] = {"#2f7ed8", "#d9541e", "#3a9d3a", "#9467bd",
				      "#c28a00", "#17a2b8", "#d63384", "#7f7f7f"};
#define COLOURS (sizeof(colours) / sizeof(*colours))

/* Nothing of a name may be more to gnuplot than a name. */
static void put_name(FILE *to, const char *name)
{
	fputc('\'', to);
	for (; *name; name++)
		fputc(*name == '\'' || *name == '\\' || *name == '`' || *name == '$' ||
				      (unsigned char)*name < ' '
			      ? ' '
			      : *name,
		      to);
	fputc('\'', to);
}

static void put_data(FILE *to, const struct repro_data *d)
{
	for (size_t i = 0; i < d->n; i++) {
		fprintf(to, "$d%zu << EOD\n", i);
		for (size_t k = 0; k < d->series[i].n; k++)
			fprintf(to, "%.10g %.10g\n", d->series[i].points[k].x,
				d->series[i].points[k].y);
		fputs("EOD\n", to);
	}
}

static void put_lines(FILE *to, const struct repro_data *d)
{
	fputs("plot ", to);
	for (size_t i = 0; i < d->n; i++) {
		fprintf(to, "%s$d%zu with linespoints lc rgb '%s' pt 7 ps 0.5 title ",
			i ? ", " : "", i, colours[i % COLOURS]);
		put_name(to, d->series[i].name);
	}
	fputc('\n', to);
}

/* A bar for each series: of the first of its points, or several beside each other. */
static void put_bars(FILE *to, const struct repro_data *d)
{
	fputs("set boxwidth 0.8\nset style fill solid 0.75\nset yrange [0:*]\nset xtics rotate by "
	      "-25 (",
	      to);
	for (size_t i = 0; i < d->n; i++) {
		fputs(i ? ", " : "", to);
		put_name(to, d->series[i].name);
		fprintf(to, " %zu", i);
	}
	fprintf(to, ")\nset xrange [-0.6:%.1f]\nunset key\nplot ", (double)d->n - 0.4);
	for (size_t i = 0; i < d->n; i++)
		fprintf(to, "%s$d%zu using (%zu):2 every ::::0 with boxes lc rgb '%s'",
			i ? ", " : "", i, i, colours[i % COLOURS]);
	fputc('\n', to);
}

static void put_script(FILE *to, const struct repro_finding *r)
{
	const struct repro_experiment *x = r->figure->experiment;

	fputs("set terminal svg size 640,420 noenhanced font 'sans-serif,14' linewidth 1.5\n"
	      "set grid\nset key below\nset title ",
	      to);
	put_name(to, r->figure->name);
	fputs("\nset ylabel ", to);
	put_name(to, x->y ? x->y : "");
	fputc('\n', to);
	put_data(to, &r->data);
	if (x->bars) {
		put_bars(to, &r->data);
		return;
	}
	fputs("set xlabel ", to);
	put_name(to, x->x ? x->x : "");
	fprintf(to, "\n%s%s", x->log_x ? "set logscale x 2\n" : "",
		x->log_y ? "set logscale y\n" : "set yrange [0:*]\n");
	put_lines(to, &r->data);
}

/* Runs gnuplot; what it prints, allocated, or NULL. */
static char *draw(const char *script)
{
	char *text = malloc(SVG_MAX + 1);
	int fd[2], status = 1, null;
	size_t len = 0;
	ssize_t n = 1;
	pid_t pid;

	if (!text || pipe2(fd, O_CLOEXEC)) {
		free(text);
		return NULL;
	}
	pid = fork();
	if (!pid) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(null, STDIN_FILENO);
		dup2(fd[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execlp("timeout", "timeout", "30", "gnuplot", script, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	while (len < SVG_MAX && (n = read(fd[0], text + len, SVG_MAX - len)) > 0)
		len += (size_t)n;
	close(fd[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	text[len] = '\0';
	if (status || len == SVG_MAX || !strstr(text, "</svg>")) {
		free(text);
		return NULL;
	}
	return text;
}

/* OUT/hsal-fig10.svg */
static int file_of(const struct repro_options *o, const struct repro_finding *r, const char *suffix,
		   char path[PATH_MAX])
{
	char *slash;

	if ((size_t)snprintf(path, PATH_MAX, "%s/%s%s", o->out, r->figure->name, suffix) >=
	    PATH_MAX)
		return -ENAMETOOLONG;
	slash = path + strlen(o->out) + 1;
	for (; *slash; slash++)
		if (*slash == '/')
			*slash = '-';
	return 0;
}

int repro_plot(const struct repro_options *o, struct repro_finding *r)
{
	char script[PATH_MAX], svg[PATH_MAX];
	FILE *f;
	int ret = 0;

	if (!r->data.n)
		return -ENODATA;
	if (file_of(o, r, ".gp", script) || file_of(o, r, ".svg", svg))
		return -ENAMETOOLONG;
	f = fopen(script, "we");
	if (!f)
		return -errno;
	put_script(f, r);
	if (fclose(f))
		return -errno;
	r->svg = draw(script);
	if (!r->svg)
		return -EIO;
	f = fopen(svg, "we");
	if (!f || fputs(r->svg, f) < 0)
		ret = -errno;
	if (f && fclose(f))
		ret = -errno;
	return ret;
}
