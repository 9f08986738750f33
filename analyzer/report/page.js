'use strict';
/* Arrows, the drawer, stepping and filters. The page can be read without any of it. */
(function () {
	const NS = 'http://www.w3.org/2000/svg';
	const all = (root, what) => Array.from(root.querySelectorAll(what));
	document.documentElement.classList.remove('no-script');

	/* An element with text, which is never taken for markup: every string comes from a trace. */
	function make(name, attributes, text) {
		const e = document.createElement(name);
		for (const k in attributes) e.setAttribute(k, attributes[k]);
		if (text !== undefined) e.textContent = text;
		return e;
	}

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
			if (!e || !e.getClientRects().length) return null;
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
	const events = all(document, '.event');
	const eventsOf = (figure) => all(figure, '.event').filter((e) => !e.classList.contains('gone'));
	const twins = (event) => events.filter((e) => e.dataset.key === event.dataset.key);
	const textOf = (event, part) => (event.querySelector(part) || { textContent: '' }).textContent.trim();

	/* The same event in both orders, and the dataflows it takes part in. */
	function link(event, on) {
		for (const e of twins(event)) e.classList.toggle('linked', on);
		for (const p of all(document, 'svg.flows path[data-to]'))
			if (p.dataset.to === event.id || p.dataset.from === event.id) p.classList.toggle('hot', on);
	}

	/* ---- the drawer: one event, its source and its whole stack, across the page ---- */

	const drawer = make('aside', { id: 'drawer', 'aria-label': 'Event', tabindex: '-1', hidden: '' });
	const live = make('p', { class: 'where-we-are', role: 'status' });
	const inside = make('div', { class: 'inside' });
	let current = null;

	function button(text, label, action) {
		const b = make('button', { type: 'button', 'aria-label': label, title: label }, text);
		b.addEventListener('click', action);
		return b;
	}

	const bar = make('div', { class: 'bar' });
	bar.append(button('\u2039', 'Previous event (k)', () => step(-1)),
		button('\u203a', 'Next event (j)', () => step(1)), live, button('\u2715', 'Close (Esc)', close));
	drawer.append(bar, inside);

	function side(event) {
		const figure = event.closest('figure'), list = eventsOf(figure);
		const box = make('section', { class: 'side ' + (figure.classList.contains('failing') ? 'failing' : 'alternate') });
		box.append(make('h3', {}, figure.querySelector('h2').textContent +
			`: event ${list.indexOf(event) + 1} of ${list.length}`));
		const what = event.querySelector('.what').cloneNode(true);
		box.append(what);
		return box;
	}

	function fill(event) {
		const more = event.querySelector('.more').cloneNode(true);
		const facts = make('div', { class: 'facts' });
		const excerpt = more.querySelector('.excerpt');
		inside.replaceChildren();
		inside.append(make('h2', {}, `${event.dataset.thread}, ${textOf(event, '.where')}`));
		const sides = make('div', { class: 'sides' });
		for (const e of twins(event)) sides.append(side(e));
		inside.append(sides);
		if (excerpt) excerpt.remove();
		facts.append(more);
		const columns = make('div', { class: 'columns' });
		if (excerpt) columns.append(excerpt);
		columns.append(facts);
		inside.append(columns);
		const here = inside.querySelector('.here');
		if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.clientHeight / 2;
		inside.scrollTop = 0;
	}

	/* The other order stands where it was when the same event happened, or the last one before it. */
	function reach(figure, event) {
		const list = eventsOf(figure);
		const mine = eventsOf(event.closest('figure'));
		for (let i = mine.indexOf(event); i >= 0; i--) {
			const at = list.findIndex((e) => e.dataset.key === mine[i].dataset.key);
			if (at >= 0) return at;
		}
		return -1;
	}

	function select(event) {
		if (current) link(current, false);
		current = event;
		link(event, true);
		const said = [];
		for (const figure of figures) {
			const list = eventsOf(figure), at = reach(figure, event);
			list.forEach((e, i) => {
				e.classList.toggle('later', i > at);
				e.classList.toggle('current', i === at && e.dataset.key === event.dataset.key);
			});
			const name = figure.classList.contains('failing') ? 'failing' : 'passing';
			said.push(`${name} order: ${at + 1} of ${list.length}`);
			const scroll = figure.querySelector('.scroll');
			if (at >= 0 && scroll.scrollHeight > scroll.clientHeight)
				scroll.scrollTop = list[at].offsetTop - scroll.clientHeight / 3;
		}
		live.textContent = said.join(', ');
		fill(event);
		drawer.hidden = false;
		document.body.classList.add('has-drawer');
		const summary = event.querySelector('summary');
		summary.focus({ preventScroll: true });
		event.scrollIntoView({ block: 'nearest', inline: 'nearest' });
		redraw();
		link(event, true);
	}

	function close() {
		if (!current) return;
		const was = current;
		link(was, false);
		current = null;
		drawer.hidden = true;
		document.body.classList.remove('has-drawer');
		for (const e of events) e.classList.remove('later', 'current');
		was.querySelector('summary').focus({ preventScroll: true });
	}

	function step(by) {
		const figure = current ? current.closest('figure') : figures[0];
		if (!figure) return;
		const list = eventsOf(figure);
		const at = current ? list.indexOf(current) + by : by > 0 ? 0 : list.length - 1;
		if (list[at]) select(list[at]);
	}

	/* The passing order's event of the same name, or the one reached by then; and back. */
	function across() {
		if (!current) return;
		const other = figures.find((f) => f !== current.closest('figure'));
		const at = other ? reach(other, current) : -1;
		if (at >= 0) select(eventsOf(other)[at]);
	}

	for (const e of events) {
		e.addEventListener('mouseenter', () => link(e, true));
		e.addEventListener('mouseleave', () => { if (e !== current) link(e, false); });
		e.addEventListener('focusin', () => link(e, true));
		e.addEventListener('focusout', () => { if (e !== current) link(e, false); });
		e.addEventListener('toggle', redraw);
		e.querySelector('summary').addEventListener('click', (c) => {
			c.preventDefault();
			if (e === current) close();
			else select(e);
		});
	}

	document.addEventListener('keydown', (k) => {
		const at = document.activeElement;
		if (k.key === 'Escape') {
			if (at && at.id === 'search' && at.value) { at.value = ''; filter(); } else close();
			return;
		}
		if (k.ctrlKey || k.metaKey || k.altKey || (at && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName))) return;
		const inEvent = at && at.parentElement && at.parentElement.classList.contains('event');
		const by = k.key === 'j' || (inEvent && k.key === 'ArrowDown') ? 1 :
			k.key === 'k' || (inEvent && k.key === 'ArrowUp') ? -1 : 0;
		if (by && (current || !inEvent)) {
			step(by);
		} else if (by) {
			const list = eventsOf(at.closest('figure')).map((e) => e.querySelector('summary'));
			const next = list[list.indexOf(at) + by];
			if (next) next.focus();
		} else if (k.key === 'o') {
			across();
		} else if (k.key === '/' && document.getElementById('search')) {
			document.getElementById('search').focus();
		} else {
			return;
		}
		k.preventDefault();
	});

	/* ---- search and filters ---- */

	const hidden = new Set();
	let filter = () => {};

	function hideLanes() {
		for (const lanes of all(document, '.lanes')) {
			const names = all(lanes, '.lane-name');
			const gone = names.map((n) => hidden.has(n.dataset.thread));
			lanes.style.gridTemplateColumns = gone.some((g) => g) ?
				gone.map((g) => g ? '0' : 'minmax(8.5rem, 1fr)').join(' ') : '';
			for (const e of lanes.children) {
				const column = parseInt(e.style && e.style.gridColumnStart, 10);
				if (column) e.classList.toggle('gone', gone[column - 1]);
			}
		}
	}

	function filters(tools) {
		const threads = [...new Set(all(document, '.lane-name').map((n) => n.dataset.thread))];
		const variables = [...new Set(events.map((e) => e.dataset.variable).filter((v) => v))].sort();
		const search = make('input', { id: 'search', type: 'search', placeholder: 'Search events (/)', 'aria-label': 'Search events' });
		const found = make('span', { id: 'found', role: 'status' });
		const pick = make('select', { id: 'variable', 'aria-label': 'Variable' });
		pick.append(make('option', { value: '' }, 'all variables'));
		for (const v of variables) pick.append(make('option', { value: v }, v));
		const lanes = make('fieldset', { id: 'threads' });
		lanes.append(make('legend', {}, 'Threads'));
		for (const t of threads) {
			const label = make('label'), box = make('input', { type: 'checkbox', value: t });
			box.checked = true;
			box.addEventListener('change', () => {
				if (box.checked) hidden.delete(t);
				else hidden.add(t);
				filter();
			});
			label.append(box, t);
			lanes.append(label);
		}
		filter = () => {
			const words = search.value.toLowerCase().split(/\s+/).filter((w) => w);
			let n = 0, all = 0;
			hideLanes();
			for (const e of events) {
				const text = e.textContent.toLowerCase();
				const fits = words.every((w) => text.includes(w)) &&
					(!pick.value || e.dataset.variable === pick.value);
				e.classList.toggle('dim', !fits);
				if (!e.classList.contains('gone')) { all++; n += fits; }
			}
			found.textContent = words.length || pick.value || hidden.size ? `${n} of ${all} events` : '';
			if (current && current.classList.contains('gone')) close();
			redraw();
		};
		search.addEventListener('input', filter);
		pick.addEventListener('change', filter);
		tools.append(search);
		if (variables.length > 1) tools.append(pick);
		if (threads.length > 2) tools.append(lanes);
		tools.append(found, make('span', { class: 'keys' }, 'j, k: step \u00b7 o: other order \u00b7 Esc: close'));
	}

	const tools = document.querySelector('.tools');
	if (tools && events.length) {
		filters(tools);
		document.body.append(drawer);
	}

	const opener = document.getElementById('open-all');
	if (opener) opener.addEventListener('click', () => {
		const open = opener.getAttribute('aria-pressed') !== 'true';
		opener.setAttribute('aria-pressed', String(open));
		for (const e of events) e.open = open;
	});

	/* ---- commands to copy: not those of a page that somebody else wrote ---- */

	/* Where the clipboard is not to be had, the text is selected. */
	async function copy(code, b) {
		try {
			await navigator.clipboard.writeText(code.textContent);
			b.textContent = 'Copied';
		} catch (e) {
			getSelection().selectAllChildren(code);
			b.textContent = 'Selected: press Ctrl+C';
		}
		setTimeout(() => { b.textContent = 'Copy'; }, 3000);
	}

	if (!document.documentElement.classList.contains('foreign'))
		for (const c of all(document, '.command')) {
			const b = make('button', { type: 'button' }, 'Copy');
			b.addEventListener('click', () => copy(c.querySelector('code'), b));
			c.append(b);
		}

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
