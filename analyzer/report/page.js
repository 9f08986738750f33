'use strict';
/* Arrows need to know where the cards are; everything else works without this. */
(function () {
	const NS = 'http://www.w3.org/2000/svg';
	const all = (root, what) => Array.from(root.querySelectorAll(what));
	document.documentElement.classList.remove('no-script');

	function add(svg, name, attributes) {
		const e = document.createElementNS(NS, name);
		for (const k in attributes) e.setAttribute(k, attributes[k]);
		svg.appendChild(e);
		return e;
	}

	function head(svg, x, y, right, kind) {
		const d = right ? -9 : 9;
		add(svg, 'path', { class: 'head ' + kind, d: `M${x} ${y} l${d} -5 v10 z` });
	}

	/* From below the write to the side of the read that faces it. */
	function route(a, b) {
		const toRight = b.left >= a.right, toLeft = b.right <= a.left;
		if (toRight || toLeft) {
			const x1 = a.left + a.width * (toRight ? 0.75 : 0.25), y1 = a.bottom;
			const x2 = toRight ? b.left : b.right, y2 = b.top + Math.min(24, b.height / 2);
			const bend = Math.max(26, Math.abs(x2 - x1) / 2) * (toRight ? -1 : 1);
			const drop = Math.max(16, (y2 - y1) / 2);
			return { d: `M${x1} ${y1} C${x1} ${y1 + drop} ${x2 + bend} ${y2} ${x2} ${y2}`,
				x: x2, y: y2, right: toRight };
		}
		const x = a.left, y1 = a.bottom - 12, y2 = b.top + Math.min(24, b.height / 2);
		return { d: `M${x} ${y1} C${x - 26} ${y1} ${x - 26} ${y2} ${b.left} ${y2}`,
			x: b.left, y: y2, right: true };
	}

	function draw(figure) {
		const lanes = figure.querySelector('.lanes');
		if (!lanes) return;
		let svg = lanes.querySelector('svg.flows');
		if (svg) svg.remove();
		svg = document.createElementNS(NS, 'svg');
		svg.setAttribute('class', 'flows');
		svg.setAttribute('aria-hidden', 'true');
		svg.setAttribute('width', lanes.scrollWidth);
		svg.setAttribute('height', lanes.scrollHeight);
		lanes.appendChild(svg);
		const base = lanes.getBoundingClientRect();
		const box = (id) => {
			const e = document.getElementById(id);
			if (!e) return null;
			const r = e.getBoundingClientRect();
			return { left: r.left - base.left, right: r.right - base.left, top: r.top - base.top,
				bottom: r.bottom - base.top, width: r.width, height: r.height };
		};
		for (const li of all(figure, '.flow-list li')) {
			const kind = li.classList.contains('differs') ? 'differs' : 'same';
			const to = box(li.dataset.to);
			if (!to) continue;
			if (!li.dataset.from) {
				const y = to.top + Math.min(24, to.height / 2), x = to.left;
				add(svg, 'path', { class: kind, d: `M${x - 16} ${y} H${x - 2}`, 'data-to': li.dataset.to });
				add(svg, 'circle', { class: kind, cx: x - 18, cy: y, r: 4 });
				head(svg, x, y, true, kind);
				continue;
			}
			const from = box(li.dataset.from);
			if (!from) continue;
			const r = route(from, to);
			add(svg, 'path', { class: kind, d: r.d, 'data-from': li.dataset.from, 'data-to': li.dataset.to });
			head(svg, r.x, r.y, r.right, kind);
		}
	}

	const figures = all(document, 'figure.schedule');
	const redraw = () => figures.forEach(draw);

	/* The same event in both schedules, and the dataflows it takes part in. */
	function link(event, on) {
		for (const e of all(document, '.event'))
			if (e.dataset.key === event.dataset.key) e.classList.toggle('linked', on);
		for (const p of all(document, 'svg.flows path[data-to]'))
			if (p.dataset.to === event.id || p.dataset.from === event.id) p.classList.toggle('hot', on);
	}

	for (const e of all(document, '.event')) {
		e.addEventListener('mouseenter', () => link(e, true));
		e.addEventListener('mouseleave', () => link(e, false));
		e.addEventListener('focusin', () => link(e, true));
		e.addEventListener('focusout', () => link(e, false));
		e.addEventListener('toggle', redraw);
	}

	/* Up and down walk through a schedule in its order. */
	document.addEventListener('keydown', (k) => {
		const step = k.key === 'ArrowDown' ? 1 : k.key === 'ArrowUp' ? -1 : 0;
		const at = document.activeElement;
		if (!step || !at || !at.parentElement || !at.parentElement.classList.contains('event')) return;
		const list = all(at.closest('figure'), '.event > summary');
		const next = list[list.indexOf(at) + step];
		if (next) { next.focus(); k.preventDefault(); }
	});

	const opener = document.getElementById('open-all');
	if (opener) opener.addEventListener('click', () => {
		const open = opener.getAttribute('aria-pressed') !== 'true';
		opener.setAttribute('aria-pressed', String(open));
		for (const e of all(document, '.event')) e.open = open;
	});

	window.addEventListener('resize', redraw);
	for (const when of ['beforeprint', 'afterprint'])
		window.addEventListener(when, () => {
			document.documentElement.classList.toggle('printing', when === 'beforeprint');
			redraw();
		});
	window.addEventListener('load', redraw);
	redraw();
	document.documentElement.dataset.ready = 'yes';
}());
